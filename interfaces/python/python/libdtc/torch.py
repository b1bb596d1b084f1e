"""Packs and unpacks as operators of PyTorch, which `torch.compile` keeps in its graphs and gradients go through.

The operators are `torch.ops.libdtc.pack`, `unpack` and `unpack_into`; the functions here call them. They take layouts of whole elements,
without index axes, that name no element twice: the gradient of a pack is then an unpack, and the reverse.
"""

import base64
import functools
import pickle

import torch

from . import Layout

__all__ = ["pack", "unpack", "unpack_into"]


@functools.lru_cache(maxsize=None)
def _named(layout: Layout) -> str:
    """The layout as an argument that operators may have: text."""
    return base64.b85encode(pickle.dumps(layout)).decode()


@functools.lru_cache(maxsize=None)
def _layout(name: str) -> Layout:
    return pickle.loads(base64.b85decode(name))


@torch.library.custom_op("libdtc::pack", mutates_args=())
def _pack(x: torch.Tensor, layout: str) -> torch.Tensor:
    found = _layout(layout)
    return found.pack(x.detach(), x.new_empty(found.shape))


@_pack.register_fake
def _(x, layout):
    return x.new_empty(_layout(layout).shape)


@torch.library.custom_op("libdtc::unpack", mutates_args=())
def _unpack(buf: torch.Tensor, layout: str, shape: list[int]) -> torch.Tensor:
    return _layout(layout).unpack(buf.detach(), buf.new_zeros(shape))


@_unpack.register_fake
def _(buf, layout, shape):
    return buf.new_zeros(shape)


@torch.library.custom_op("libdtc::unpack_into", mutates_args=("out",))
def _unpack_into(buf: torch.Tensor, out: torch.Tensor, layout: str) -> None:
    _layout(layout).unpack(buf.detach(), out.detach())


@_unpack_into.register_fake
def _(buf, out, layout):
    return None


def _keep_pack(ctx, inputs, output):
    x, ctx.layout = inputs
    ctx.shape = list(x.shape)


def _keep_unpack(ctx, inputs, output):
    _, ctx.layout, _ = inputs


_pack.register_autograd(lambda ctx, grad: (_unpack(grad.contiguous(), ctx.layout, ctx.shape), None), setup_context=_keep_pack)
_unpack.register_autograd(lambda ctx, grad: (_pack(grad.contiguous(), ctx.layout), None, None), setup_context=_keep_unpack)


def pack(layout: Layout, x: torch.Tensor) -> torch.Tensor:
    """Packs what the layout names of `x`, a contiguous tensor, into a new tensor.

    Raises what `Layout.pack` raises.

    >>> import libdtc.torch, torch # doctest: +SKIP
    >>> x = torch.arange(6.0).reshape(2, 3).requires_grad_() # doctest: +SKIP
    >>> libdtc.torch.pack(libdtc.layout((2, 3), torch.float32)[:, 1], x).sum().backward() # doctest: +SKIP
    >>> x.grad # doctest: +SKIP
    tensor([[0., 1., 0.],
            [0., 1., 0.]])
    """
    return _pack(x, _named(layout))


def unpack(layout: Layout, buf: torch.Tensor, shape: list[int]) -> torch.Tensor:
    """Unpacks `buf`, a contiguous tensor, to where the layout says in a new tensor of that shape, with zeros elsewhere.

    Raises what `Layout.unpack` raises.
    """
    return _unpack(buf, _named(layout), list(shape))


def unpack_into(layout: Layout, buf: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
    """Unpacks `buf`, a contiguous tensor, to where the layout says in `out`, and returns it. No gradient goes through.

    Raises what `Layout.unpack` raises.
    """
    _unpack_into(buf, out, _named(layout))
    return out
