"""Transposes of an array that is distributed over the processes of MPI, as by mpi4py-fft, or by libdtc and Alltoallv.

    mpirun -n 4 python transposes.py [--device] [--megabytes 64] [--rounds 15]

An array is whole along one axis and split along another, and is to be whole along the latter. mpi4py-fft calls Alltoallw with subarrays,
which the MPI packs. Here libdtc packs the pieces for all processes in one batch, and unpacks what Alltoallv brought in another, unless it
lies there already. "Shared" is for processes of one node whose arrays are in a window of shared memory: each copies its pieces from there to
where they belong, layout to layout. Prints milliseconds, the medians of rounds that take turns, of the process that took longest; all bytes
are compared. "Packed" is the time of the packs alone: by libdtc, and by MPI_Pack of the same subarrays. Needs mpi4py-fft; with --device, CuPy.
"""

import argparse
import os
import statistics
import sys
import time

import numpy as np

import libdtc

# Axis that is split before, axis that is split behind, and the shape in units.
CASES = [
    ((1, 1, 1), 0, 1),
    ((1, 1, 1), 1, 2),
    ((1, 1, 1), 2, 0),
    ((4, 2, 0.125), 1, 2),
    ((0.25, 1, 4), 0, 2),
]
DTYPES = [np.float64, np.complex128, np.float32]


class Ours:
    """Batches of libdtc around Alltoallv."""

    def __init__(self, comm, xp, before, behind, split_before, split_behind):
        self.comm, self.before, self.behind = comm, before, behind
        item, ranks = before.dtype.itemsize, comm.size
        length = before.shape[split_behind]
        sent = [pieces(before.ndim, split_behind, length, ranks, rank) for rank in range(ranks)]
        got = [pieces(behind.ndim, split_before, behind.shape[split_before], ranks, rank) for rank in range(ranks)]
        self.send = xp.empty(before.nbytes, "u1")
        # What is split by its first axis arrives as it lies there.
        lies = split_before == 0
        self.receive = behind.view("u1").reshape(-1) if lies else xp.empty(behind.nbytes, "u1")
        self.sent, packs = segments(before, sent, self.send, item)
        self.got, unpacks = segments(behind, got, self.receive, item)
        self.packs = libdtc.Batch(packs=[(layout, before, segment) for layout, segment in packs])
        self.unpacks = None if lies else libdtc.Batch(unpacks=[(layout, segment, behind) for layout, segment in unpacks])

    def pack(self, wait):
        self.packs.run()
        wait()

    def transpose(self, wait):
        from mpi4py import MPI

        self.pack(wait)
        self.comm.Alltoallv([self.send, *self.sent, MPI.BYTE], [self.receive, *self.got, MPI.BYTE])
        if self.unpacks is not None:
            self.unpacks.run()
            wait()


class Shared:
    """Copies from the arrays of all processes of a node, which are in a window of shared memory."""

    def __init__(self, comm, window, before, behind, split_before, split_behind):
        self.comm, self.behind, self.copies = comm, behind, []
        axes, ranks = behind.ndim, comm.size
        own = pieces(axes, split_behind, before.shape[split_behind], ranks, comm.rank)
        for rank, shape in enumerate(comm.allgather(before.shape)):
            theirs = np.frombuffer(window.Shared_query(rank)[0], before.dtype).reshape(shape)
            part = pieces(axes, split_before, behind.shape[split_before], ranks, rank)
            self.copies.append((libdtc.layout(behind)[part], theirs, libdtc.layout(theirs)[own]))

    def transpose(self):
        self.comm.Barrier()
        for to, theirs, of in self.copies:
            libdtc.copy(self.behind, to, theirs, of)
        self.comm.Barrier()


def pieces(axes, axis, length, ranks, rank):
    """The part of an axis that a process has, as slices of the array; the first processes have one more where it does not divide."""
    each, more = divmod(length, ranks)
    begin = rank * each + min(rank, more)
    slices = [slice(None)] * axes
    slices[axis] = slice(begin, begin + each + (rank < more))
    return tuple(slices)


def segments(array, parts, buffer, item):
    """Counts and displacements in bytes of the parts of an array behind each other, and the layout and the segment of each."""
    counts, displacements, pairs, at = [], [], [], 0
    for part in parts:
        layout = libdtc.layout(array)[part]
        counts.append(layout.nbytes)
        displacements.append(at)
        pairs.append((layout, buffer[at : at + layout.nbytes]))
        at += layout.nbytes
    return (counts, displacements), pairs


def packed_by_mpi(comm, transfer, before, buffer):
    """Packs the subarrays that mpi4py-fft made, by the MPI."""
    at = 0
    for datatype in transfer._subtypesA:
        at = datatype.Pack(before, buffer, at, comm)


def array_like(comm, xp, host):
    """A copy of an array; in a window of shared memory if it is the host's, which is returned, too."""
    from mpi4py import MPI

    if xp is not np:
        return xp.asarray(host), None
    window = MPI.Win.Allocate_shared(host.nbytes, host.itemsize, comm=comm)
    array = np.frombuffer(window.Shared_query(comm.rank)[0], host.dtype).reshape(host.shape)
    array[...] = host
    return array, window


def measured(comm, xp, wait, units, split_before, split_behind, dtype, megabytes, rounds):
    from mpi4py_fft.pencil import Pencil, Subcomm

    item = np.dtype(dtype).itemsize
    unit = (megabytes * 1e6 * comm.size / item / float(np.prod(units))) ** (1 / 3)
    shape = tuple(max(comm.size, round(unit * part)) for part in units)
    # An axis of 0 is split over the processes, those of 1 are whole.
    split = Subcomm(comm, [0 if axis == split_before else 1 for axis in range(3)])
    begin = Pencil(split, shape, split_behind)
    end = begin.pencil(split_before)
    theirs = begin.transfer(end, dtype)
    host = np.random.default_rng(3 + comm.rank).integers(0, 256, begin.subshape[:-1] + (begin.subshape[-1] * item,), dtype="u1").view(dtype)
    before, window = array_like(comm, xp, host)
    behind, expected, copied = (xp.zeros(end.subshape, dtype) for _ in range(3))
    ours = Ours(comm, xp, before, behind, split_before, split_behind)
    packed = xp.empty(before.nbytes, "u1")
    calls = {
        "libdtc": lambda: ours.transpose(wait),
        "mpi4py-fft": lambda: theirs.forward(before, expected),
        "packed by libdtc": lambda: ours.pack(wait),
        "packed by MPI": lambda: packed_by_mpi(comm, theirs, before, packed),
    }
    if window is not None:
        shared = Shared(comm, window, before, copied, split_before, split_behind)
        calls["shared"] = shared.transpose
    times = {name: [] for name in calls}
    for at in range(rounds + 3):
        for name, call in calls.items():
            comm.Barrier()
            start = time.perf_counter()
            call()
            if at >= 3:
                times[name].append((time.perf_counter() - start) * 1e3)
    compared = [("transposed", behind, expected), ("packed", ours.send, packed)]
    for what, one, other in compared + ([("copied", copied, expected)] if window is not None else []):
        if not bool((one.reshape(-1).view("u1") == other.reshape(-1).view("u1")).all()):
            sys.exit(f"transposes.py: {what} bytes differ, {shape} from axis {split_before} to {split_behind}")
    theirs.destroy()
    if window is not None:
        window.Free()
    medians = {name: max(comm.allgather(statistics.median(all))) for name, all in times.items()}
    name = f"{' x '.join(map(str, shape))} {np.dtype(dtype).name}, split by axis {split_before}, then {split_behind}"
    return name, medians


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", action="store_true")
    parser.add_argument("--megabytes", type=float, default=64, help="of each process")
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    xp, wait = np, lambda: None
    if options.device:
        import cupy as xp

        # A context before MPI_Init, without which an MPI may move the memory of GPUs through the host.
        local = int(os.environ.get("OMPI_COMM_WORLD_LOCAL_RANK", os.environ.get("MPI_LOCALRANKID", "0")))
        xp.cuda.Device(local % xp.cuda.runtime.getDeviceCount()).use()
        xp.cuda.runtime.free(0)
        wait = lambda: xp.cuda.get_current_stream().synchronize()
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    if comm.rank == 0:
        print("| transpose | mpi4py-fft, ms | libdtc, ms | ratio | shared, ms | ratio | packed by MPI, ms | by libdtc, ms | ratio |")
        print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |", flush=True)
    for at, (units, split_before, split_behind) in enumerate(CASES):
        dtype = DTYPES[at % len(DTYPES)]
        name, ms = measured(comm, xp, wait, units, split_before, split_behind, dtype, options.megabytes, options.rounds)
        theirs, mpi = ms["mpi4py-fft"], ms["packed by MPI"]
        if comm.rank == 0:
            cells = [f"{theirs:.2f}", *beside(theirs, ms["libdtc"]), *beside(theirs, ms.get("shared"))]
            print(f"| {name} | {' | '.join([*cells, f'{mpi:.2f}', *beside(mpi, ms['packed by libdtc'])])} |", flush=True)


def beside(theirs, ours):
    """A time, and theirs over it."""
    return ("", "") if ours is None else (f"{ours:.2f}", f"{theirs / ours:.2f}")


if __name__ == "__main__":
    main()
