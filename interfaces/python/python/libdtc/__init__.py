"""Layouts of arrays, packed and unpacked by compiled kernels, on CPUs and on CUDA GPUs.

>>> import numpy as np, libdtc
>>> field = np.arange(24.0).reshape(2, 3, 4)
>>> face = libdtc.layout(field)[:, :, 0]
>>> face.pack(field)
array([[ 0.,  4.,  8.],
       [12., 16., 20.]])

The guide is docs/reference/python.md of the sources.
"""

from . import _nvrtc as _nvrtc
from ._libdtc import (
    Batch,
    CudaError,
    IndexAxis,
    Layout,
    LayoutError,
    copy,
    doctor,
    fields,
    from_mpi,
    index,
    layout,
    load,
)

__all__ = [
    "Batch",
    "CudaError",
    "IndexAxis",
    "Layout",
    "LayoutError",
    "copy",
    "doctor",
    "fields",
    "from_mpi",
    "index",
    "layout",
    "load",
]
