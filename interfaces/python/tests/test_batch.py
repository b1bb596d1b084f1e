"""Batches of packs and unpacks."""

import numpy as np
import pytest

import libdtc


def test_faces():
    field = np.random.default_rng(3).random((6, 7, 8))
    whole = libdtc.layout(field)
    parts = [np.s_[0], np.s_[-1], np.s_[:, 0], np.s_[:, -1], np.s_[..., 0], np.s_[..., -1]]
    outs = [np.full(field[part].shape, np.nan) for part in parts]
    batch = libdtc.Batch([(whole[part], field, out) for part, out in zip(parts, outs)])
    assert len(batch) == 6
    batch.run()
    assert all((out == field[part]).all() for part, out in zip(parts, outs))

    target = np.zeros_like(field)
    back = libdtc.Batch(unpacks=[(whole[part], out, target) for part, out in zip(parts, outs)])
    back.run()
    assert all((target[part] == field[part]).all() for part in parts) and (target[1:-1, 1:-1, 1:-1] == 0).all()


def test_moved():
    fields = np.random.default_rng(4).random((2, 5, 5))
    column = libdtc.layout(fields[0])[:, 2]
    out, target = np.zeros(5), np.zeros((5, 5))
    batch = libdtc.Batch([(column, fields[0], out)], [(column, out, target)])
    batch.run()
    assert (out == fields[0, :, 2]).all() and (target[:, 2] == out).all()
    other = np.zeros(5)
    batch.move(0, fields[1], other)
    batch.move(1, x=other)
    batch.run()
    assert (out == fields[0, :, 2]).all() and (other == fields[1, :, 2]).all() and (target[:, 2] == other).all()
    with pytest.raises(IndexError, match="i: expected an item below 2, found 2"):
        batch.move(2, fields[1])
    with pytest.raises(libdtc.LayoutError, match="item 0 x: expected 2 axes, found 1"):
        batch.move(0, other)


def test_arrays_are_kept():
    memory = bytearray(range(12))
    out = bytearray(3)
    batch = libdtc.Batch([(libdtc.layout((3, 4), "u1")[:, 1], memory, out)])
    with pytest.raises(BufferError):
        out.extend(b"x" * 1000)
    array = np.arange(9.0).reshape(3, 3)
    held = libdtc.Batch([(libdtc.layout(array)[1], array, result := np.zeros(3))])
    del array
    held.run()
    batch.run()
    assert out == bytearray([1, 5, 9]) and result.tolist() == [3, 4, 5]


def test_refused():
    field = np.zeros((3, 3))
    tabled = libdtc.layout(field)[libdtc.index("rows", max=2)]
    with pytest.raises(TypeError, match="rows: expected a table of indices, found none"):
        libdtc.Batch([(tabled, field, np.zeros((2, 3)))])
    with pytest.raises(TypeError, match="columns: expected an argument or a table of the layout, found neither"):
        libdtc.Batch([(tabled, field, np.zeros((2, 3)), {"rows": [1, 2], "columns": [1]})])
    with pytest.raises(libdtc.LayoutError, match=r"packs\[0\] out: expected 24 bytes, found 48"):
        libdtc.Batch([(tabled, field, np.zeros((2, 3)), {"rows": [1]})])
    with pytest.raises(libdtc.LayoutError, match=r"copies\[0\] out: expected the 24 packed bytes of what is read, found 72"):
        libdtc.Batch(copies=[(np.zeros((3, 3)), libdtc.layout(field), field, tabled, {"rows": [1]})])
    with pytest.raises(TypeError):
        libdtc.Batch([(tabled, field)])
    with pytest.raises(libdtc.LayoutError, match=r"unpacks\[0\] x: expected 24 bytes, found 32"):
        libdtc.Batch([], [(libdtc.layout(field)[0], np.zeros(4), field)])
    libdtc.Batch().run()


def test_tables():
    cache = np.random.default_rng(5).random((2, 9, 3))
    blocks = libdtc.layout(cache)[:, libdtc.index("blocks", max=4)]
    out, target, other, face = np.zeros((2, 3, 3)), np.zeros_like(cache), np.zeros_like(cache), np.zeros((9, 3))
    table = np.array([7, 0, 4], "i4")
    batch = libdtc.Batch(
        [(blocks, cache, out, {"blocks": table}), (libdtc.layout(cache)[1], cache, face)],
        [(blocks, cache[:, :2].copy(), target, {"blocks": [5, 6]})],
        [(other, blocks, cache, blocks, {"blocks": [1, 8]})],
    )
    assert len(batch) == 4
    batch.run()
    assert (out == cache[:, [7, 0, 4]]).all() and (face == cache[1]).all()
    assert (target[:, [5, 6]] == cache[:, :2]).all() and (target[:, :5] == 0).all()
    assert (other[:, [1, 8]] == cache[:, [1, 8]]).all() and (other[:, 2:8] == 0).all()
    # Tables are read at each run, and entries below 0 are skipped.
    table[:] = [8, -1, 2]
    before = out.copy()
    batch.move(3, blocks=np.array([3, 2]))
    batch.run()
    assert (out[:, [0, 2]] == cache[:, [8, 2]]).all() and (out[:, 1] == before[:, 1]).all()
    assert (other[:, [1, 2, 3, 8]] == cache[:, [1, 2, 3, 8]]).all() and (other[:, 4:8] == 0).all()
    # What is wrong is named, and nothing moves.
    out[:] = 0
    table[1] = 9
    with pytest.raises(IndexError, match=r"item 0 blocks\[1\]: expected an index below 9, found 9"):
        batch.run()
    assert (out == 0).all()
    with pytest.raises(libdtc.LayoutError, match=r"copies\[0\] out: expected the 96 packed bytes of what is read, found 144"):
        libdtc.Batch(copies=[(other, libdtc.layout(cache)[:, :3], cache, blocks, {"blocks": [1, 2]})]).run()


def test_tables_keep_their_length():
    field = np.arange(12.0).reshape(4, 3)
    rows, entries, out = libdtc.layout(field)[libdtc.index("rows", max=4)], [2, 0], np.zeros((2, 3))
    batch = libdtc.Batch([(rows, field, out, {"rows": entries})])
    batch.run()
    assert (out == field[[2, 0]]).all()
    entries.append(1)
    with pytest.raises(libdtc.LayoutError, match="item 0: expected tables for 48 packed bytes, as before, found 72"):
        batch.run()
    larger = np.zeros((3, 3))
    batch.move(0, out=larger, rows=[3, 1, 1])
    batch.run()
    assert (larger == field[[3, 1, 1]]).all()


def test_copies():
    field = np.random.default_rng(6).random((4, 5))
    turned, flat = np.zeros((5, 4)), np.zeros(20)
    batch = libdtc.Batch(
        copies=[
            (turned, libdtc.layout(turned), field, libdtc.layout(field).T),
            (flat, libdtc.layout(flat)[:5], field, libdtc.layout(field)[2]),
        ]
    )
    batch.run()
    assert (turned == field.T).all() and (flat[:5] == field[2]).all() and (flat[5:] == 0).all()
    batch.move(0, x=2 * field)
    batch.run()
    assert (turned == 2 * field.T).all()


def test_entries_of_another_form_are_refused():
    field, out = np.zeros((3, 4)), np.zeros(3)
    column = libdtc.layout(field)[:, 1]
    for lists, message in [
        ({"packs": [(column, field, out), (column, field)]}, r"packs\[1\]: expected \(layout, x, out\), .*, found a tuple of <.*Layout.*>, <.*ndarray.*>"),
        ({"unpacks": [column]}, r"unpacks\[0\]: expected \(layout, buf, out\), .*, found <class '.*Layout'>"),
        ({"copies": [(column, field, column, field)]}, r"copies\[0\]: expected \(dst, ld, src, ls\), .*, found a tuple of"),
    ]:
        with pytest.raises(TypeError, match=message):
            libdtc.Batch(**lists)
