"""Arrays of others, which have one protocol each, and processes that fork."""

import os
import subprocess
import sys

import numpy as np
import pytest

import libdtc


class Exported:
    """An array of the host that has DLPack and nothing else."""

    def __init__(self, array, versioned):
        self.array, self.versioned, self.dtype = array, versioned, array.dtype

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

    def __dlpack__(self, **options):
        if not self.versioned and "max_version" in options:
            raise TypeError("max_version")
        return self.array.__dlpack__(**options)


@pytest.mark.parametrize("versioned", [False, True])
def test_dlpack(versioned):
    memory = np.arange(24.0).reshape(4, 6)[:, ::-2]
    layout = libdtc.layout(Exported(memory, versioned))[1:, 1]
    out = np.zeros(3)
    assert layout.pack(Exported(memory, versioned), Exported(out, versioned)).array is out
    assert (out == memory[1:, 1]).all()
    if versioned:
        memory.setflags(write=False)
        with pytest.raises(libdtc.LayoutError, match="out: expected an array that may be written, found a read-only one"):
            layout.unpack(out, Exported(memory, versioned))


def test_a_name_is_not_trusted_for_a_size():
    class Lie:
        dtype = np.dtype("f8")

        def __init__(self, memory):
            self.memory = memory

        def __dlpack_device__(self):
            return (1, 0)

        def __dlpack__(self, **options):
            return self.memory.__dlpack__(**options)

    layout = libdtc.layout(3, "f8", strides=(4,))
    with pytest.raises(libdtc.LayoutError, match="x dtype: expected float64 with 8 bytes, found 4 bytes"):
        layout.pack(Lie(np.zeros(3, "f4")))


def test_arrays_of_the_standard():
    xp = pytest.importorskip("array_api_strict")
    x = xp.reshape(xp.arange(12, dtype=xp.float64), (3, 4))
    layout = libdtc.layout(x)[:, 1]
    packed = layout.pack(x)
    assert type(packed) is type(x) and packed.dtype == xp.float64 and xp.all(packed == x[:, 1])
    assert xp.float64 == libdtc.layout((3, 4), "f8")[:, 1].pack(x).dtype
    back = layout.unpack(packed)
    assert type(back) is type(x) and xp.all(back[:, 1] == x[:, 1]) and xp.all(back[:, 0] == 0)


# In a process of its own: frameworks of other tests have threads, which a child of theirs has not.
FORKS = """
import os, numpy as np, libdtc
memory = np.arange(12.0).reshape(3, 4)
layout = libdtc.layout(memory)[:, 1]
layout.pack(memory)
child = os.fork()
if child == 0:
    good = layout.pack(memory).tolist() == [1, 5, 9] and libdtc.layout(memory).T.pack(memory).tolist() == memory.T.tolist()
    os._exit(0 if good else 1)
print(os.waitpid(child, 0)[1])
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_packs():
    assert subprocess.run([sys.executable, "-c", FORKS], capture_output=True, text=True, check=True).stdout.strip() == "0"
