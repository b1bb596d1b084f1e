# mpi4py-fft: forward and backward transforms of a cube, whose transposes are MPI_Alltoallw of subarrays.
import sys
import numpy
from mpi4py import MPI
from mpi4py_fft import PFFT, newDistArray

n = int(sys.argv[1]) if len(sys.argv) > 1 else 64
fft = PFFT(MPI.COMM_WORLD, [n, n, n], dtype=float)
field = newDistArray(fft, False)
field[:] = numpy.random.default_rng(MPI.COMM_WORLD.rank).random(field.shape)
before = field.copy()
for run in range(20):
    field = fft.backward(fft.forward(field))
assert numpy.allclose(field, before)
