"""What layouts are, and what is refused."""

import copy
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

import libdtc

RECORD = np.dtype([("x", "f8"), ("tag", "i1"), ("v", "f4", (3,)), ("z", "i4")], align=True)


def records(count):
    found = np.zeros(count, RECORD)
    found["x"], found["tag"], found["z"] = np.arange(count), np.arange(count) % 100, -np.arange(count)
    found["v"] = np.arange(3 * count).reshape(count, 3)
    return found


def test_fields_of_records():
    memory = records(50)
    layout = libdtc.fields(RECORD, ["z", "x"])
    packed = layout.pack(memory.reshape(5, 10))
    assert packed.dtype == np.dtype([("z", "i4"), ("x", "f8")]) and packed.shape == (5, 10)
    assert (packed["z"].ravel() == memory["z"]).all() and (packed["x"].ravel() == memory["x"]).all()
    back = layout.unpack(packed)
    assert back.dtype == RECORD and (back["x"] == memory["x"]).all() and not back["tag"].any()
    with pytest.raises(libdtc.LayoutError, match="field: expected one of x, tag, v, z, found y"):
        libdtc.fields(RECORD, ["y"])


def test_columns():
    memory = records(20)
    assert (libdtc.layout(memory)["v"].pack(memory) == memory["v"]).all()
    assert libdtc.layout(memory)[::2]["tag"].pack(memory).tobytes() == memory["tag"][::2].tobytes()
    both = libdtc.layout(memory)[3:][["tag", "v"]].pack(memory)
    assert (both["v"] == memory["v"][3:]).all() and both.itemsize == 13


def test_types_without_numpy_are_bytes():
    memory = np.arange(12, dtype="u2").reshape(3, 4)
    layout = libdtc.layout((3, 4), "bf16")[:, 1]
    assert layout.dtype == "bfloat16" and layout.nbytes == 6
    assert layout.pack(memory).tobytes() == memory[:, 1].tobytes()
    assert libdtc.layout((4,), "float8_e4m3fn")[::2].pack(b"abcd") == bytearray(b"ac")


def test_strides_and_buffers():
    layout = libdtc.layout((2, 3), "u1", strides=(-3, 1))
    memory = np.frombuffer(b"abcdef", "u1").reshape(2, 3)[::-1]
    assert layout.pack(memory).tobytes() == b"defabc"
    assert libdtc.layout((3, 4), "u1")[:, 1].pack(b"abcdefghijkl") == bytearray(b"bfj")
    packed = bytearray(3)
    assert libdtc.layout((3, 4), "u1").T[1].pack(b"abcdefghijkl", packed) is packed


def test_loaded(tmp_path):
    column = libdtc.load("vector 3 1 4 byte")
    assert column.pack(b"abcdefghi") == bytearray(b"aei")
    path = tmp_path / "type.json"
    path.write_text('{"type": {"kind": "contiguous", "count": 2, "child": {"kind": "named", "name": "MPI_INT"}}}')
    assert libdtc.load(path).nbytes == 8
    with pytest.raises(libdtc.LayoutError, match="expected an array with bytes 0 to 9, found 8 bytes"):
        column.pack(b"abcdefgh")
    with pytest.raises(libdtc.LayoutError):
        libdtc.load("vektor 3")


def test_pickles_and_equality():
    memory = records(8)
    whole = libdtc.layout((4, 5), "f4")
    layouts = [whole, whole.T, whole[1:, ::-2], libdtc.layout(memory)["v"], libdtc.layout(memory)[["x", "z"]],
               libdtc.fields(RECORD, ["z"]), libdtc.load("vector 3 1 4 byte"), libdtc.layout((3,), "bf16")]
    for layout in layouts:
        for again in (pickle.loads(pickle.dumps(layout)), copy.copy(layout)):
            assert again == layout and hash(again) == hash(layout) and again.nbytes == layout.nbytes
        assert sum(layout == other for other in layouts) == 1
    function, (state,) = whole[1:].__reduce__()
    base, element, result, (runs, view, tabled) = state
    with pytest.raises(libdtc.LayoutError, match="state: expected bytes from 0 to 80, found 4000"):
        function((base, element, result, (runs, (4000, *view[1:]), tabled)))


X = np.zeros((4, 5))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: libdtc.layout(X)[4], IndexError, "axis 0: expected an index from -4 to 3, found 4"),
        (lambda: libdtc.layout(X)[0, 0, 0], IndexError, "index: expected at most 2 axes, found 3"),
        (lambda: libdtc.layout(X)[np.array([1])], TypeError, "axis 0: expected an int, a slice"),
        (lambda: libdtc.layout(X)[True], TypeError, "axis 0: expected an int, a slice"),
        (lambda: libdtc.layout(X)[[0, 2]], TypeError, "axis 0: expected an int, a slice, ..., None or an axis of libdtc.index, found <class .list.>"),
        (lambda: libdtc.layout(X).permute(0, 0), ValueError, r"axes\[1\]: expected one of 2 axes, each once, found 0"),
        (lambda: libdtc.layout(X)["a"], TypeError, "dtype: expected one with fields, found float64"),
        (lambda: libdtc.layout((4, -1), "f8"), ValueError, "shape axis 1: expected at least 0 elements, found -1"),
        (lambda: libdtc.layout((2**40, 2**40), "f8"), ValueError, "shape: expected fewer than 2.63 bytes"),
        (lambda: libdtc.layout(3), TypeError, "dtype: expected the type of the elements, found none"),
        (lambda: libdtc.layout(3, "O"), ValueError, "dtype: expected elements without Python objects"),
        (lambda: libdtc.layout((4, 6), "f8").pack(X), ValueError, "x axis 1: expected 6 elements, found 5"),
        (lambda: libdtc.layout((4, 5), "f4").pack(X), ValueError, "x dtype: expected float32, found float64"),
        (lambda: libdtc.layout((4, 5), ">f8").pack(X), ValueError, "x dtype: expected >f8, found float64"),
        (lambda: libdtc.layout(20, "f8").pack(X), ValueError, "x: expected 1 axes, found 2"),
        (lambda: libdtc.layout(X).pack(np.asfortranarray(X)), ValueError, "x axis 0: expected a stride of 40 bytes, found 8"),
        (lambda: libdtc.layout(X).pack(X, np.zeros(3)), ValueError, "out: expected 160 bytes, found 24"),
        (lambda: libdtc.layout(X).pack(X, np.zeros((5, 4)).T), ValueError, "out: expected a C-contiguous array"),
        (lambda: libdtc.layout(X).pack(X, b"a" * 160), ValueError, "out: expected an array that may be written"),
        (lambda: libdtc.layout(X)[0].pack(X, X[0]), ValueError, "out: expected memory apart from that of x"),
        (lambda: libdtc.layout(X).pack([1, 2]), TypeError, "x: expected an array"),
        (lambda: libdtc.layout(X).pack(X, np.empty(20, object)), ValueError, "out: expected elements without Python objects"),
        (lambda: libdtc.layout((3,), "f8", strides=(0,)).unpack(np.zeros(3), X), ValueError, "out: expected a layout whose"),
    ],
)
def test_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_views_that_may_not_be_written_are_read():
    memory = np.arange(6.0).reshape(2, 3)
    memory.setflags(write=False)
    assert libdtc.layout(memory)[:, 1].pack(memory).tolist() == [1, 4]
    repeated = np.broadcast_to(np.arange(3.0), (4, 3))
    assert libdtc.layout(repeated).pack(repeated).tolist() == repeated.tolist()


def run(code, **variables):
    return subprocess.run([sys.executable, "-c", code], env=os.environ | variables, capture_output=True, text=True, check=True).stdout


def test_the_nvrtc_of_the_environment_is_named(tmp_path):
    library = tmp_path / "nvidia/cu13/lib/libnvrtc.so.13"
    library.parent.mkdir(parents=True)
    library.write_bytes(b"")
    code = "import os; os.environ.pop('DTC_NVRTC', None); import libdtc; print(os.environ['DTC_NVRTC'])"
    assert run(code, PYTHONPATH=str(tmp_path)).strip() == str(library)
    assert run("import libdtc, os; print(os.environ['DTC_NVRTC'])", DTC_NVRTC="mine", PYTHONPATH=str(tmp_path)).strip() == "mine"


def test_nothing_is_imported():
    assert run("import libdtc, sys; print({'numpy', 'torch', 'cupy', 'mpi4py'} & {*sys.modules})").strip() == "set()"


def test_the_command():
    def said(*arguments):
        return subprocess.run([sys.executable, "-m", "libdtc", *arguments], capture_output=True, text=True, check=True).stdout

    assert "CUDA driver" in said("doctor")
    assert said("explain", 'libdtc.layout((3, 4), "f8")[:, 1]').startswith("<libdtc.Layout of float64, shape (3,) of (3, 4)>")
    lines = said("bench", "np.zeros((8, 8))[:, 1]").splitlines()
    assert lines[0].startswith("64 bytes of") and len(lines) == 3 and all("GB/s" in line for line in lines[1:])


def test_explain_and_doctor():
    assert "tier:" in libdtc.layout((4, 5), "f8")[:, 0].explain()
    assert "CUDA driver" in libdtc.doctor()
