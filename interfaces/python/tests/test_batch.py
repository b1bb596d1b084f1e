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
    with pytest.raises(libdtc.LayoutError, match=r"packs\[0\]: expected a layout without index axes, found one with some"):
        libdtc.Batch([(tabled, field, np.zeros((2, 3)))])
    with pytest.raises(libdtc.LayoutError, match=r"unpacks\[0\] x: expected 24 bytes, found 32"):
        libdtc.Batch([], [(libdtc.layout(field)[0], np.zeros(4), field)])
    libdtc.Batch().run()
