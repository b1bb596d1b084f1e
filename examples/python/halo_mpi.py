"""The halo of a CuPy field between two GPUs, by subarray datatypes of mpi4py or by slices that are copied by hand.

    mpirun -n 2 python halo_mpi.py [--size 256] [--fields 1] [--by datatypes|hand]
    LD_PRELOAD=libdtc_mpi.so mpirun -n 2 python halo_mpi.py --by datatypes

Each process has a GPU and a cube of doubles with a ghost layer, periodic in all axes: both faces of every axis go to the other process.
Prints the milliseconds of an exchange, the median over rounds and the longer one of both processes. Ghosts are checked.
"""

import argparse
import os
import statistics
import time

import cupy

# A context on the GPU of this process before MPI_Init: an MPI that finds none may move the memory of GPUs through the host.
LOCAL_RANK = int(os.environ.get("OMPI_COMM_WORLD_LOCAL_RANK", os.environ.get("MPI_LOCALRANKID", "0")))
cupy.cuda.Device(LOCAL_RANK % cupy.cuda.runtime.getDeviceCount()).use()
cupy.cuda.runtime.free(0)

from mpi4py import MPI  # noqa: E402


def face(shape, axis, at):
    """A layer of an array, as slices: all of it but the ghosts of the other axes."""
    slices = [slice(1, -1)] * len(shape)
    slices[axis] = slice(at, at + 1)
    return tuple(slices)


def faces(shape):
    """For each axis and side: the layer to send, and the ghosts that the other process fills."""
    pairs = []
    for axis, length in enumerate(shape):
        pairs.append((face(shape, axis, 1), face(shape, axis, length - 1)))
        pairs.append((face(shape, axis, length - 2), face(shape, axis, 0)))
    return pairs


def subarray(shape, slices):
    starts = [part.indices(length)[0] for part, length in zip(slices, shape)]
    sizes = [len(range(*part.indices(length))) for part, length in zip(slices, shape)]
    return MPI.DOUBLE.Create_subarray(shape, sizes, starts).Commit()


class ByDatatypes:
    """Messages of subarrays, out of the field and into it."""

    def __init__(self, comm, fields):
        self.comm, self.other = comm, 1 - comm.rank
        self.messages = [
            (field, subarray(field.shape, sent), subarray(field.shape, ghosts)) for field in fields for sent, ghosts in faces(field.shape)
        ]

    def exchange(self):
        requests = []
        for tag, (field, _, ghosts) in enumerate(self.messages):
            requests.append(self.comm.Irecv([field, 1, ghosts], self.other, tag))
        cupy.cuda.get_current_stream().synchronize()
        for tag, (field, sent, _) in enumerate(self.messages):
            requests.append(self.comm.Isend([field, 1, sent], self.other, tag))
        MPI.Request.Waitall(requests)


class ByHand:
    """Messages of contiguous buffers, which CuPy copies slices to and from."""

    def __init__(self, comm, fields):
        self.comm, self.other = comm, 1 - comm.rank
        self.messages = []
        for field in fields:
            for sent, ghosts in faces(field.shape):
                buffers = cupy.empty(field[sent].shape), cupy.empty(field[ghosts].shape)
                self.messages.append((field[sent], field[ghosts], *buffers))

    def exchange(self):
        requests = [self.comm.Irecv(got, self.other, tag) for tag, (_, _, _, got) in enumerate(self.messages)]
        for sent, _, buffer, _ in self.messages:
            buffer[...] = sent
        cupy.cuda.get_current_stream().synchronize()
        requests += [self.comm.Isend(buffer, self.other, tag) for tag, (_, _, buffer, _) in enumerate(self.messages)]
        MPI.Request.Waitall(requests)
        for _, ghosts, _, got in self.messages:
            ghosts[...] = got
        cupy.cuda.get_current_stream().synchronize()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=256)
    parser.add_argument("--fields", type=int, default=1)
    parser.add_argument("--by", choices=["datatypes", "hand"], default="datatypes")
    parser.add_argument("--rounds", type=int, default=30)
    options = parser.parse_args()
    comm = MPI.COMM_WORLD
    if comm.size != 2:
        raise SystemExit(f"halo_mpi.py: expected 2 processes, found {comm.size}")
    shape = (options.size + 2,) * 3
    numbers = [cupy.random.default_rng(7 + at).random((2, *shape)) for at in range(options.fields)]
    fields = [both[comm.rank].copy() for both in numbers]
    made = (ByDatatypes if options.by == "datatypes" else ByHand)(comm, fields)
    times = []
    for at in range(options.rounds + 5):
        comm.Barrier()
        start = time.perf_counter()
        made.exchange()
        if at >= 5:
            times.append((time.perf_counter() - start) * 1e3)
    for both, field in zip(numbers, fields):
        for sent, ghosts in faces(shape):
            if not cupy.array_equal(field[ghosts], both[1 - comm.rank][sent]):
                raise SystemExit(f"halo_mpi.py: wrong ghosts at {ghosts}")
    took = comm.reduce(statistics.median(times), MPI.MAX)
    if comm.rank == 0:
        print(f"| {options.size}^3 | {options.fields} | {options.by} | {took:.3f} ms |", flush=True)


if __name__ == "__main__":
    main()
