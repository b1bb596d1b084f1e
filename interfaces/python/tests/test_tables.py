"""Index axes beside NumPy's indexing by arrays."""

import pickle
import random

import numpy as np
import pytest

import libdtc


def drawn(seed):
    """An array, the index by NumPy of a part of it, the layout of the part, and the tables of a call."""
    draw = random.Random(seed)
    shape = tuple(draw.randint(1, 7) for _ in range(draw.randint(1, 4)))
    dtype = np.dtype(draw.choice(["u1", "i2", "f4", "f8", "c16", "S5", [("a", "i1"), ("b", "f8")]]))
    count = int(np.prod(shape))
    array = np.frombuffer(draw.randbytes(count * dtype.itemsize), dtype=dtype).reshape(shape).copy()
    if draw.random() < 0.4:
        array = array.transpose(draw.sample(range(array.ndim), array.ndim))[tuple(slice(None, None, draw.choice([1, -1])) for _ in shape)]
    tabled = draw.sample(range(array.ndim), draw.randint(1, array.ndim))
    index, tables, places = [], {}, []
    for axis, length in enumerate(array.shape):
        if axis in tabled:
            table = [draw.randrange(length) for _ in range(draw.randint(0, 2 * length))]
            name = f"t{axis}"
            tables[name] = np.array(table, draw.choice(["i4", "i8"]))
            index.append(libdtc.index(name, max=2 * length))
            places.append(np.array(table, int))
        else:
            part = slice(draw.randint(0, length), None, draw.choice([1, 2]))
            index.append(part)
            places.append(np.arange(length)[part])
    return draw, array, np.ix_(*places), libdtc.layout(array)[tuple(index)], tables


@pytest.mark.parametrize("seed", range(300))
def test_tables_cross(seed):
    draw, array, index, layout, tables = drawn(seed)
    expected = array[index]
    if draw.random() < 0.4:
        order = draw.sample(range(array.ndim), array.ndim)
        expected, layout = expected.transpose(order), layout.permute(order)
    else:
        order = list(range(array.ndim))
    if draw.random() < 0.3:
        layout = pickle.loads(pickle.dumps(layout))
    packed = layout.pack(array, **tables)
    assert packed.shape == expected.shape and packed.dtype == array.dtype
    assert packed.tobytes() == expected.tobytes()

    # Where a table lists an element twice, one of both stays: those tables are left out here.
    unique = {name: np.unique(table)[::-1] for name, table in tables.items()}
    places = [np.asarray(axis).ravel() for axis in index]
    for axis in range(array.ndim):
        if f"t{axis}" in unique:
            places[axis] = unique[f"t{axis}"]
    part = array[np.ix_(*places)].transpose(order)
    changed = np.frombuffer(bytes(~byte & 255 for byte in part.tobytes()), array.dtype).reshape(part.shape)
    target, wanted = array.copy(order="K"), array.copy(order="K")
    if target.strides != array.strides:
        return
    wanted[np.ix_(*places)] = changed.transpose(np.argsort(order))
    assert layout.unpack(changed, target, **unique) is target
    assert target.tobytes() == wanted.tobytes()


def test_one_table_for_several_axes():
    array = np.arange(25.0).reshape(5, 5)
    rows = libdtc.index("rows", max=5)
    layout = libdtc.layout(array)[rows, rows]
    assert (layout.pack(array, rows=[4, 0, 2]) == array[np.ix_([4, 0, 2], [4, 0, 2])]).all()


def test_skipped_entries():
    array = np.arange(12.0).reshape(4, 3)
    layout = libdtc.layout(array)[libdtc.index("rows", max=4)]
    out = np.full((3, 3), -5.0)
    layout.pack(array, out, rows=np.array([2, -1, 0], "i4"))
    assert (out == [array[2], [-5] * 3, array[0]]).all()
    assert (layout.pack(array, rows=[-1, 1]) == [[0] * 3, array[1]]).all()
    target = np.full((4, 3), 7.0)
    layout.unpack(out, target, rows=[1, -3, 3])
    assert (target == [[7] * 3, array[2], [7] * 3, array[0]]).all()


def test_strided_tables_and_none():
    array = np.arange(10.0)
    layout = libdtc.layout(array)[libdtc.index("at", max=10)]
    assert layout.pack(array, at=np.arange(10)[::-3]).tolist() == [9, 6, 3, 0]
    assert layout.pack(array, at=()).shape == (0,)
    assert layout.shape == (10,) and layout.nbytes == 80


def test_copies_between_tables():
    source, target = np.arange(24.0).reshape(6, 4), np.zeros((4, 5))
    rows, columns = libdtc.index("rows", max=6), libdtc.index("columns", max=5)
    ls, ld = libdtc.layout(source)[rows], libdtc.layout(target)[:, columns].T
    libdtc.copy(target, ld, source, ls, rows=[5, 1], columns=[0, 3])
    expected = np.zeros((4, 5))
    expected[:, [0, 3]] = source[[5, 1]].T
    assert (target == expected).all()
    libdtc.copy(target, libdtc.layout(target)[:, 1], source, ls[:, 2], rows=[0, 1, 2, 3])
    assert (target[:, 1] == source[:4, 2]).all()


X = np.zeros((4, 5))
ROWS = libdtc.index("rows", max=3)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: libdtc.layout(X)[ROWS].pack(X), TypeError, "rows: expected a table of indices, found none"),
        (lambda: libdtc.layout(X)[ROWS].pack(X, rows=[0], other=1), TypeError, "other: expected an argument or a table"),
        (lambda: libdtc.layout(X).pack(X, rows=[0]), TypeError, "rows: expected an argument or a table"),
        (lambda: libdtc.layout(X)[ROWS].pack(X, rows=[0, 4]), IndexError, r"rows\[1\]: expected an index below 4, found 4"),
        (lambda: libdtc.layout(X)[ROWS].pack(X, rows=[0] * 4), ValueError, "rows: expected at most 3 entries, found 4"),
        (lambda: libdtc.layout(X)[ROWS].pack(X, rows=np.zeros(2)), ValueError, "rows: expected a table of int32 or int64, found float64"),
        (lambda: libdtc.layout(X)[ROWS].pack(X, rows=np.zeros((1, 1), int)), ValueError, "rows: expected a table with 1 axis, found 2"),
        (lambda: libdtc.layout(X)[ROWS].pack(X, np.zeros(3), rows=[0]), ValueError, "out: expected 40 bytes, found 24"),
        (lambda: libdtc.layout(X)[ROWS][0], ValueError, "axis 0: expected ':' for the index axis rows, found another index"),
        (lambda: libdtc.layout((0, 2), "f8")[ROWS], ValueError, "axis 0: expected at least 1 element for an index axis, found 0"),
        (lambda: libdtc.index("out", max=3), ValueError, "name: expected the name of an argument that calls do not have"),
        (lambda: libdtc.index("a b", max=3), ValueError, "name: expected"),
        (lambda: libdtc.index("rows", max=0), ValueError, "max: expected at least 1 entry, found 0"),
    ],
)
def test_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_axes_know_their_names():
    assert "rows: at most 3 indices below 4" in libdtc.layout(X)[ROWS].explain()
    assert (ROWS.name, ROWS.max, repr(ROWS)) == ("rows", 3, 'libdtc.index("rows", max=3)')
    first, second = libdtc.layout(X)[ROWS], libdtc.layout(X)[libdtc.index("rows", max=3)]
    assert first == second and hash(first) == hash(second) and first != libdtc.layout(X)[:3]


def test_loaded():
    memory = np.arange(64, dtype="u1")
    pages = libdtc.load("table 0 8 4 8 (contiguous 8 byte)")
    assert (pages.nbytes, pages.shape) == (32, (32,))
    assert pages.pack(memory, table0=[5, 0]).tobytes() == bytes([*range(40, 48), *range(8)])
    target = np.zeros(64, "u1")
    pages.unpack(memory[:16], target, table0=np.array([1, 7], "i4"))
    assert target.tobytes() == bytes([0] * 8 + [*range(8)] + [0] * 40 + [*range(8, 16)])
    again = pickle.loads(pickle.dumps(pages))
    assert again == pages and hash(again) == hash(pages) and "at most 32 bytes: table 0 8 4 8" in repr(again)
    for part in ["table0: at most 4 indices below 8", "table 0 below 8 x 8", "kernel on a GPU: words of 8 bytes"]:
        assert part in pages.explain()
    turned = np.zeros(16, "u1")
    libdtc.copy(turned, libdtc.load("contiguous 16 byte"), memory, pages, table0=[2, 1])
    assert turned.tobytes() == bytes([*range(16, 24), *range(8, 16)])
    with pytest.raises(IndexError, match=r"table0\[1\]: expected an index below 8, found 8"):
        pages.pack(memory, table0=[0, 8])
    with pytest.raises(libdtc.LayoutError, match="table0: expected at most 4 entries, found 5"):
        pages.pack(memory, table0=[0] * 5)
    with pytest.raises(libdtc.LayoutError, match="x: expected an array with bytes 0 to 64, found 63 bytes"):
        pages.pack(memory[:63], table0=[0])
    with pytest.raises(libdtc.LayoutError, match="table 0: expected a table of indices, found"):
        libdtc.load("addresses 0 4 8 double")
