"""Packs and unpacks as operators of PyTorch, which `torch.compile` keeps in its graphs and gradients go through.

The operators are `torch.ops.libdtc.pack`, `unpack` and `unpack_into`; the methods of `Operator` call them. They take layouts of whole
elements, without index axes, that name no element twice: the gradient of a pack is then an unpack, and the reverse.
"""

import base64
import functools
import pickle
from collections.abc import Sequence

import torch

from . import Layout

__all__ = ["Operator"]


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


class Operator:
    """A layout as operators of PyTorch. Tensors are contiguous, and of the dtype that the layout was made with.

    >>> import libdtc.torch, torch # doctest: +SKIP
    >>> column = libdtc.torch.Operator(libdtc.layout((2, 3), torch.float32)[:, 1]) # doctest: +SKIP
    >>> x = torch.arange(6.0).reshape(2, 3).requires_grad_() # doctest: +SKIP
    >>> column.pack(x).sum().backward() # doctest: +SKIP
    >>> x.grad # doctest: +SKIP
    tensor([[0., 1., 0.],
            [0., 1., 0.]])
    """

    def __init__(self, layout: Layout) -> None:
        # Operators have no arguments of other classes, and graphs keep text as a constant.
        self._text = base64.b85encode(pickle.dumps(layout)).decode()

    def pack(self, x: torch.Tensor) -> torch.Tensor:
        """Packs what the layout names of `x` into a new tensor. Raises what `Layout.pack` raises."""
        return _pack(x, self._text)

    def unpack(self, buf: torch.Tensor, shape: Sequence[int]) -> torch.Tensor:
        """Unpacks `buf` to where the layout says in a new tensor of that shape, with zeros elsewhere. Raises what `Layout.unpack`
        raises."""
        return _unpack(buf, self._text, list(shape))

    def unpack_into(self, buf: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
        """Unpacks `buf` to where the layout says in `out`, and returns it. No gradient goes through. Raises what `Layout.unpack`
        raises."""
        _unpack_into(buf, out, self._text)
        return out
