"""Datatypes of mpi4py, packed as its MPI packs them."""

import random

import numpy as np
import pytest

import libdtc

try:
    from mpi4py import MPI
except (ImportError, RuntimeError) as error:
    # The second where mpi4py finds no MPI.
    pytest.skip(f"needs mpi4py with an MPI: {error}", allow_module_level=True)


def drawn(draw, depth):
    """A datatype whose bytes begin at 0 or behind."""
    if depth == 0:
        return draw.choice([MPI.BYTE, MPI.SHORT, MPI.INT, MPI.DOUBLE, MPI.FLOAT, MPI.DOUBLE_INT, MPI.LONG_LONG, MPI.C_DOUBLE_COMPLEX])
    child = drawn(draw, depth - 1)
    count = draw.randint(1, 4)
    lengths = [draw.randint(0, 3) for _ in range(count)]
    places = [4 * at + draw.randint(0, 1) for at in range(count)]
    low, extent = child.Get_extent()
    span = child.Get_true_extent()
    room = max(extent, span[0] + span[1], 1)
    sizes = [draw.randint(2, 5) for _ in range(2)]
    return draw.choice(
        [
            lambda: child.Dup(),
            lambda: child.Create_contiguous(count),
            lambda: child.Create_vector(count, 2, 3),
            lambda: child.Create_hvector(count, 2, 3 * room),
            lambda: child.Create_indexed(lengths, places),
            lambda: child.Create_hindexed(lengths, [room * place for place in places]),
            lambda: child.Create_indexed_block(2, places),
            lambda: child.Create_hindexed_block(2, [room * place for place in places]),
            lambda: MPI.Datatype.Create_struct([1, 2], [0, 3 * room], [child, MPI.INT]),
            lambda: child.Create_subarray(sizes, [n - 1 for n in sizes], [1, 0], draw.choice([MPI.ORDER_C, MPI.ORDER_FORTRAN])),
            lambda: child.Create_darray(
                4, draw.randrange(4), sizes, [MPI.DISTRIBUTE_BLOCK, MPI.DISTRIBUTE_CYCLIC], [MPI.DISTRIBUTE_DFLT_DARG] * 2, [2, 2]
            ),
            lambda: child.Create_resized(0, room + draw.randint(0, 8)),
        ]
    )()


@pytest.mark.parametrize("seed", range(200))
def test_datatypes_are_packed_as_mpi_packs_them(seed):
    draw = random.Random(seed)
    datatype = drawn(draw, draw.randint(0, 3))
    low, extent = datatype.Get_true_extent()
    size = datatype.Get_size()
    if low < 0:
        with pytest.raises(libdtc.LayoutError):
            libdtc.from_mpi(datatype).pack(bytes(8))
        return
    datatype.Commit()
    memory = np.frombuffer(draw.randbytes(max(low + extent, 1)), "u1")
    expected = np.zeros(size, "u1")
    if size:
        pack(datatype, memory, expected)
    layout = libdtc.from_mpi(datatype)
    assert layout.nbytes == size
    assert layout.pack(memory).tobytes() == expected.tobytes()


def pack(datatype, memory, packed):
    """What a rank that sends to itself receives."""
    MPI.COMM_SELF.Sendrecv([memory, 1, datatype], 0, 0, [packed, packed.size, MPI.BYTE], 0, 0)


def test_precisions_of_fortran():
    real = MPI.Datatype.Create_f90_real(15, 300)
    assert libdtc.from_mpi(real.Create_vector(2, 1, 2)).nbytes == 16
