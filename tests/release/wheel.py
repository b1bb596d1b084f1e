"""Packs and unpacks what a slice names, beside NumPy."""

import platform

import libdtc
import numpy as np

field = np.arange(20.0 * 30 * 40).reshape(20, 30, 40)
for face in [np.s_[1:-1, 1:-1, 0], np.s_[:, 3, :], np.s_[::3, 5:9, ::-1]]:
    layout = libdtc.layout(field)[face]
    packed = layout.pack(field)
    expected = np.ascontiguousarray(field[face])
    assert np.array_equal(np.asarray(packed).view("f8").reshape(expected.shape), expected), face
    other = np.zeros_like(field)
    layout.unpack(packed, out=other)
    assert np.array_equal(other[face], expected) and np.count_nonzero(other) == np.count_nonzero(expected), face
print(f"wheel on {platform.machine()}: 3 slices as NumPy {np.__version__} has them")
