"""Unpacks that combine, beside NumPy."""

import numpy as np
import pytest

import libdtc

OPERATIONS = {
    "sum": np.add,
    "prod": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
    "band": np.bitwise_and,
    "bor": np.bitwise_or,
    "bxor": np.bitwise_xor,
}


@pytest.mark.parametrize("op", OPERATIONS)
@pytest.mark.parametrize("dtype", ["i1", "u2", "i4", "u8", "f2", "f4", "f8"])
def test_arithmetic(op, dtype):
    draw = np.random.default_rng(7)
    field, packed = (draw.integers(0, 100, shape).astype(dtype) for shape in [(5, 6, 4), (5, 4)])
    column = libdtc.layout(field)[:, 2]
    if op.startswith("b") and dtype.startswith("f"):
        with pytest.raises(libdtc.LayoutError, match="op: expected an operation on float"):
            column.unpack(packed, field, op=op)
        return
    expected = field.copy()
    expected[:, 2] = OPERATIONS[op](field[:, 2], packed)
    assert column.unpack(packed, field, op=op) is field
    assert (field == expected).all()


@pytest.mark.parametrize("op", ["sum", "max", "bor"])
def test_tables(op):
    draw = np.random.default_rng(8)
    cache, packed = draw.integers(0, 99, (3, 9, 4, 2)), draw.integers(0, 99, (3, 4, 4))
    blocks = libdtc.layout(cache)[:, libdtc.index("blocks", max=5), :, 1]
    expected = cache.copy()
    for at, block in enumerate([7, -1, 0, 4]):
        if block >= 0:
            expected[:, block, :, 1] = OPERATIONS[op](expected[:, block, :, 1], packed[:, at])
    blocks.unpack(packed, cache, op=op, blocks=np.array([7, -1, 0, 4], "i4"))
    assert (cache == expected).all()


def test_logical_and_complex():
    flags = np.array([True, False, True, False])
    libdtc.layout(flags)[:2].unpack(np.array([True, True]), flags, op="land")
    assert flags.tolist() == [True, False, True, False]
    numbers = np.array([1 + 2j, 3j])
    libdtc.layout(numbers).unpack(np.array([2 + 0j, 1j]), numbers, op="prod")
    assert numbers.tolist() == [2 + 4j, -3 + 0j]


def test_refused():
    field = np.zeros((3, 3))
    rows = libdtc.layout(field)[1]
    with pytest.raises(libdtc.LayoutError, match='op: expected one of sum, prod.*, found "add"'):
        rows.unpack(np.zeros(3), field, op="add")
    with pytest.raises(libdtc.LayoutError, match="out: expected an array, since there is an op, found None"):
        rows.unpack(np.zeros(3), op="sum")
    swapped = np.zeros(3, ">f8")
    with pytest.raises(libdtc.LayoutError, match="op: expected elements that are numbers .*, found >f8"):
        libdtc.layout(swapped).unpack(np.zeros(3), swapped, op="sum")
    with pytest.raises(libdtc.LayoutError, match="op: expected elements that are numbers"):
        libdtc.load("vector 3 1 4 double").unpack(bytes(24), bytearray(96), op="sum")
    assert (field == 0).all()
