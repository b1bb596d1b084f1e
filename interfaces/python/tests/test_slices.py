"""Packs and unpacks beside NumPy's own slices, on random layouts."""

import random

import numpy as np
import pytest

import libdtc

DTYPES = ["u1", "i2", "f4", "<f8", ">f8", "c16", "?", "M8[s]", "S5", [("a", "i1"), ("b", "f8")]]


def drawn_index(draw, shape):
    """An index that keeps some elements of an array of this shape, most often."""
    index = []
    for length in shape:
        kind = draw.random()
        if kind < 0.2 and length:
            index.append(draw.randrange(-length, length))
        else:
            step = draw.choice([1, 1, 2, 3, -1, -2])
            bounds = [draw.choice([None, draw.randint(-length - 1, length + 1)]) for _ in range(2)]
            index.append(slice(*bounds, step))
        if kind > 0.9:
            index.append(None)
    if draw.random() < 0.3:
        cut = draw.randint(0, len(index))
        index = index[:cut] + [Ellipsis]
    return tuple(index)


def drawn(seed):
    """An array, a part of it, and the layout of the part."""
    draw = random.Random(seed)
    shape = tuple(draw.choice([0, 1, 2, 3, 5, 17]) if draw.random() < 0.1 else draw.randint(1, 9) for _ in range(draw.randint(0, 5)))
    dtype = np.dtype(draw.choice(DTYPES))
    count = int(np.prod(shape, dtype=int))
    array = np.frombuffer(draw.randbytes(count * dtype.itemsize), dtype=dtype).reshape(shape).copy()
    if draw.random() < 0.4:
        # Of other strides, some negative.
        array = array.transpose(draw.sample(range(array.ndim), array.ndim))
        array = array[(..., *(slice(None, None, draw.choice([1, -1, 2])) for _ in array.shape))]
    index = drawn_index(draw, array.shape)
    # Without `...`, one element is a scalar, in the byte order of the machine.
    part = array[index if Ellipsis in index else (*index, ...)]
    layout = libdtc.layout(array)[index]
    if draw.random() < 0.4:
        order = draw.sample(range(np.ndim(part)), np.ndim(part))
        part, layout = np.transpose(part, order), layout.permute(order)
    return array, part, layout


@pytest.mark.parametrize("seed", range(600))
def test_random_layouts(seed):
    array, part, layout = drawn(seed)
    assert layout.shape == part.shape
    assert layout.nbytes == part.nbytes
    packed = layout.pack(array)
    assert type(packed) is np.ndarray and packed.dtype == array.dtype and packed.shape == part.shape
    assert packed.tobytes() == part.tobytes()

    # The bytes go back, and no others change.
    changed = np.frombuffer(bytes(~b & 255 for b in packed.tobytes()), dtype=array.dtype).reshape(part.shape)
    expected = memory_of(array)
    other = expected.copy()
    its_array = view_like(other, array)
    assert layout.unpack(changed, its_array) is its_array
    assert layout.pack(its_array).tobytes() == changed.tobytes()
    layout.unpack(packed, its_array)
    assert other.tobytes() == expected.tobytes()


def memory_of(array):
    """The bytes from the first of an array to its last."""
    low, high = np.lib.array_utils.byte_bounds(array) if array.size else (0, 0)
    base = array
    while isinstance(base.base, np.ndarray):
        base = base.base
    if not array.size:
        return np.zeros(0, "u1")
    start = low - base.__array_interface__["data"][0]
    return np.lib.stride_tricks.as_strided(base.reshape(-1).view("u1")[start:], (high - low,), (1,)).copy()


def view_like(memory, array):
    """An array in other memory, with the strides of this one."""
    if not array.size:
        return array.copy() if array.flags.c_contiguous else np.ndarray(array.shape, array.dtype, np.zeros(1, "u1"), 0, array.strides)
    offset = array.__array_interface__["data"][0] - np.lib.array_utils.byte_bounds(array)[0]
    return np.ndarray(array.shape, array.dtype, memory, offset, array.strides)


@pytest.mark.parametrize("seed", range(100))
def test_random_copies(seed):
    array, part, layout = drawn(seed)
    if layout.shape != part.shape or array.size == 0:
        return
    target = np.zeros(tuple(2 * n for n in part.shape), array.dtype)
    index = (*(slice(None, None, -2) for _ in part.shape), ...)
    there = libdtc.layout(target)[index]
    assert libdtc.copy(target, there, array, layout) is target
    assert target[index].tobytes() == part.tobytes()


def test_copies_within_an_array():
    field = np.arange(60.0).reshape(3, 4, 5)
    expected = field.copy()
    expected[..., 0] = expected[..., -2]
    whole = libdtc.layout(field)
    libdtc.copy(field, whole[..., 0], field, whole[..., -2])
    assert (field == expected).all()
    expected[1:] = expected[:-1].copy()
    libdtc.copy(field, whole[1:], field, whole[:-1])
    assert (field == expected).all()
