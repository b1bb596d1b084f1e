"""Tensors of PyTorch on the host, and its operators."""

import pytest

import libdtc

torch = pytest.importorskip("torch", reason="needs PyTorch")


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int8, torch.complex64])
def test_tensors(dtype):
    x = torch.arange(60).reshape(3, 4, 5).to(dtype)
    layout = libdtc.layout(x)[:, 1:3, ::2].permute(2, 0, 1)
    wanted = x[:, 1:3, ::2].permute(2, 0, 1)
    packed = layout.pack(x)
    assert packed.dtype == dtype and packed.is_contiguous() and torch.equal(packed, wanted)
    target = torch.zeros_like(x)
    assert layout.unpack(packed, target) is target and torch.equal(target[:, 1:3, ::2], x[:, 1:3, ::2])
    rows = libdtc.layout(x)[libdtc.index("rows", max=4)]
    table = torch.tensor([2, 0, 2], dtype=torch.int32)
    assert torch.equal(rows.pack(x, rows=table), x[[2, 0, 2]])


def test_more_than_bytes():
    x = torch.ones(3, 4)
    layout = libdtc.layout(x)[:, 1]
    with pytest.raises((libdtc.LayoutError, BufferError)):
        layout.pack(x.clone().requires_grad_())
    turned = torch.ones(3, dtype=torch.complex64).conj()
    with pytest.raises((libdtc.LayoutError, BufferError, RuntimeError)):
        libdtc.layout(turned)
    with pytest.raises((libdtc.LayoutError, BufferError, RuntimeError)):
        libdtc.layout(turned.imag)
    with pytest.raises((libdtc.LayoutError, BufferError, RuntimeError)):
        libdtc.layout(turned[:1].imag)
    assert libdtc.layout(torch.ones(3, dtype=torch.complex64).imag).strides == (8,)


def test_operators():
    import libdtc.torch

    layout = libdtc.layout((4, 6), torch.float64)[1:, ::2]
    x = torch.rand(4, 6, dtype=torch.float64, requires_grad=True)
    buf = torch.rand(3, 3, dtype=torch.float64, requires_grad=True)
    operator = libdtc.torch.Operator(layout)
    name = operator._text
    torch.library.opcheck(torch.ops.libdtc.pack.default, (x, name))
    torch.library.opcheck(torch.ops.libdtc.unpack.default, (buf, name, [4, 6]))
    torch.library.opcheck(torch.ops.libdtc.unpack_into.default, (buf.detach(), torch.zeros(4, 6, dtype=torch.float64), name))
    assert torch.autograd.gradcheck(operator.pack, x)
    assert torch.autograd.gradcheck(lambda buf: operator.unpack(buf, [4, 6]), buf)
    assert torch.equal(operator.pack(x), x[1:, ::2])
    target = torch.zeros(4, 6, dtype=torch.float64)
    assert operator.unpack_into(buf.detach(), target) is target and torch.equal(target[1:, ::2], buf.detach())


def test_a_graph_keeps_them():
    import libdtc.torch

    turned = libdtc.torch.Operator(libdtc.layout((4, 6), torch.float32).T)

    @torch.compile(backend="aot_eager", fullgraph=True)
    def doubled(x):
        return turned.pack(x + 1) * 2

    x = torch.rand(4, 6, requires_grad=True)
    found = doubled(x)
    assert torch.equal(found, (x + 1).T * 2)
    found.sum().backward()
    assert torch.equal(x.grad, torch.full((4, 6), 2.0))
