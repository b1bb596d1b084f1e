"""Texts of layouts, compiled and run beside the layouts."""

import ctypes
import shutil
import subprocess

import numpy as np
import pytest

import libdtc


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_c(tmp_path):
    field = np.random.default_rng(1).random((5, 6, 7))
    layout = libdtc.layout(field)[1:, ::2, 3]
    (tmp_path / "part.c").write_text(layout.source("c", "part"))
    library = tmp_path / "part.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, tmp_path / "part.c"], check=True)
    out, first = np.zeros(layout.shape), field[1:, ::2, 3]
    ctypes.CDLL(library).part_pack(ctypes.c_void_p(first.ctypes.data), ctypes.c_void_p(out.ctypes.data), ctypes.c_size_t(1))
    assert (out == first).all() and (layout.pack(field) == out).all()
    assert "part_unpack" in layout.source("c-header", "part")


def test_other_forms():
    layout = libdtc.layout((3, 4), "f8")[:, 1]
    assert "MPI_Type_create_hvector" in layout.source("mpi-c")
    assert "__device__" in layout.source("cuda-header")
    with pytest.raises(libdtc.LayoutError, match="form: expected c, c-header, cuda-header or mpi-c, found \"rust\""):
        layout.source("rust")
    with pytest.raises(libdtc.LayoutError, match="layout: expected one without index axes"):
        libdtc.layout((3, 4), "f8")[libdtc.index("rows", max=2)].source("c")
