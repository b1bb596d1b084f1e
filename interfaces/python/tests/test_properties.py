"""Layouts that Hypothesis draws, held against NumPy: what fails is made smaller before it is shown."""

import numpy as np
import pytest

import libdtc

pytest.importorskip("hypothesis", reason="needs Hypothesis")
from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from hypothesis.extra import numpy as arrays  # noqa: E402

# A call of the first use of a type compiles nothing, but a busy machine may stop for a while.
settings.register_profile("dtc", max_examples=150, deadline=None)
settings.load_profile("dtc")

DTYPES = st.one_of(
    arrays.scalar_dtypes().filter(lambda dtype: dtype.itemsize > 0),
    arrays.array_dtypes(arrays.integer_dtypes(), min_size=1, max_size=3),
)


@st.composite
def parts(draw, dtypes=DTYPES, most_axes=5):
    """An array of random bytes and any strides, and an index."""
    shape = draw(arrays.array_shapes(min_dims=0, max_dims=most_axes, min_side=0, max_side=7))
    dtype = np.dtype(draw(dtypes))
    seed = draw(st.integers(0, 2**32 - 1))
    count = int(np.prod(shape, dtype=int))
    array = np.frombuffer(np.random.default_rng(seed).bytes(count * dtype.itemsize), dtype).reshape(shape).copy()
    order = draw(st.permutations(range(array.ndim)))
    steps = draw(st.tuples(*(st.sampled_from([1, 1, -1, 2]) for _ in order)))
    array = array.transpose(order)[(..., *(slice(None, None, step) for step in steps))]
    return array, draw(arrays.basic_indices(array.shape, allow_newaxis=True, allow_ellipsis=True))


def as_tuple(index):
    return index if isinstance(index, tuple) else (index,)


@given(parts())
def test_packs_and_unpacks(drawn):
    array, index = drawn
    index = as_tuple(index)
    # Without `...`, one element is a scalar.
    part = array[index if Ellipsis in index else (*index, ...)]
    layout = libdtc.layout(array)[index]
    assert (layout.shape, layout.nbytes) == (part.shape, part.nbytes)
    packed = layout.pack(array)
    assert (packed.shape, packed.dtype, packed.tobytes()) == (part.shape, part.dtype, part.tobytes())
    target, expected = array.copy(order="K"), array.copy(order="K")
    bits = np.frombuffer(bytes(~byte & 255 for byte in packed.tobytes()), "u1")
    if target.strides == array.strides:
        expected[index if Ellipsis in index else (*index, ...)] = bits.view(part.dtype).reshape(part.shape) if part.size else part
        layout.unpack(bits, target)
        assert target.tobytes() == expected.tobytes()


@given(parts(), st.data())
def test_permuted(drawn, data):
    array, index = drawn
    index = as_tuple(index)
    part = array[index if Ellipsis in index else (*index, ...)]
    order = data.draw(st.permutations(range(part.ndim)))
    packed = libdtc.layout(array)[index].permute(*order).pack(array)
    assert packed.tobytes() == part.transpose(order).tobytes()
    assert libdtc.layout(array)[index].T.pack(array).tobytes() == part.T.tobytes()


@given(parts(dtypes=st.sampled_from(["u1", "i2", "f4", "f8", "c16"]), most_axes=4), st.data())
def test_tables(drawn, data):
    array, _ = drawn
    long = [axis for axis, count in enumerate(array.shape) if count]
    if not long:
        return
    axis = data.draw(st.sampled_from(long))
    table = data.draw(st.lists(st.integers(0, array.shape[axis] - 1), max_size=9))
    index = (*(slice(None) for _ in range(axis)), libdtc.index("places", max=9))
    packed = libdtc.layout(array)[index].pack(array, places=np.array(table, data.draw(st.sampled_from(["i4", "i8"]))))
    assert packed.tobytes() == array.take(np.array(table, int), axis).tobytes()
