"""Arrays of JAX on the host: read, and made anew as results."""

import numpy as np
import pytest

import libdtc

jax = pytest.importorskip("jax", reason="needs JAX")
jax.config.update("jax_platforms", "cpu")
jnp = jax.numpy


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8", "complex64", "bool", "float8_e4m3fn"])
def test_packs(dtype):
    x = (jnp.arange(60).reshape(3, 4, 5) % 2 == 0) if dtype == "bool" else jnp.arange(60).reshape(3, 4, 5).astype(dtype)
    before = np.asarray(x).tobytes()
    layout = libdtc.layout(x)[:, 1:3, ::2].permute(2, 0, 1)
    packed = layout.pack(x)
    assert isinstance(packed, jax.Array) and packed.dtype == x.dtype and packed.shape == (3, 3, 2)
    assert np.asarray(packed).tobytes() == np.asarray(x)[:, 1:3, ::2].transpose(2, 0, 1).tobytes()
    unpacked = layout.unpack(packed)
    expected = np.zeros_like(np.asarray(x))
    expected[:, 1:3, ::2] = np.asarray(x)[:, 1:3, ::2]
    assert isinstance(unpacked, jax.Array) and np.asarray(unpacked).tobytes() == expected.tobytes()
    assert np.asarray(x).tobytes() == before
    # The framework computes with what it was given.
    assert np.array_equal(np.asarray(jax.jit(lambda a: a + a)(packed)), np.asarray(packed) + np.asarray(packed))


def test_tables():
    x = jax.random.normal(jax.random.key(1), (6, 4))
    rows = libdtc.layout(x)[libdtc.index("rows", max=8)]
    table = jnp.array([5, -1, 0, 2], "int32")
    packed = rows.pack(x, rows=table)
    expected = np.asarray(x)[[5, 0, 0, 2]]
    expected[1] = 0
    assert packed.shape == (4, 4) and np.asarray(packed).tobytes() == expected.tobytes()
    with pytest.raises(IndexError, match=r"rows\[0\]: expected an index below 6, found 6"):
        rows.pack(x, rows=jnp.array([6]))


def test_never_written():
    x = jnp.arange(12.0).reshape(3, 4)
    layout = libdtc.layout(x)[:, 1]
    for refused in (
        lambda: layout.pack(x, jnp.zeros(3)),
        lambda: layout.unpack(jnp.zeros(3), x),
        lambda: libdtc.copy(x, layout, x, layout),
        lambda: libdtc.Batch([(layout, x, jnp.zeros(3))]),
    ):
        with pytest.raises(libdtc.LayoutError, match="an array that may be written, found a read-only one"):
            refused()
    out = np.empty(3, "f4")
    layout.pack(x, out)
    assert out.tolist() == [1, 5, 9]
    with pytest.raises(TypeError, match="x: expected an array"):
        jax.jit(layout.pack)(x)
