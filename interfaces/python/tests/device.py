"""Arrays in memory of an emulated GPU, with one protocol each."""

import contextlib
import ctypes
import os
import sys
import types

import numpy as np

CUDA = ctypes.CDLL(os.environ["DTC_CUDA_DRIVER"]) if "DTC_CUDA_DRIVER" in os.environ else None


def checked(status):
    assert status == 0, f"CUDA's error {status}"


@contextlib.contextmanager
def current(ordinal=0):
    """Has the context of a device current."""
    context = ctypes.c_void_p()
    checked(CUDA.cuInit(0))
    checked(CUDA.cuDevicePrimaryCtxRetain(ctypes.byref(context), ordinal))
    checked(CUDA.cuCtxPushCurrent_v2(context))
    try:
        yield
    finally:
        checked(CUDA.cuCtxPopCurrent_v2(ctypes.byref(context)))


class Memory:
    """Bytes of a device."""

    def __init__(self, count, ordinal=0):
        self.address, self.count, self.ordinal = ctypes.c_void_p(), count, ordinal
        with current(ordinal):
            checked(CUDA.cuMemAlloc_v2(ctypes.byref(self.address), ctypes.c_size_t(max(count, 1))))

    def set(self, data):
        assert len(data) == self.count
        with current(self.ordinal):
            checked(CUDA.cuMemcpyHtoDAsync_v2(self.address, ctypes.c_char_p(data), ctypes.c_size_t(self.count), None))

    def get(self):
        data = ctypes.create_string_buffer(max(self.count, 1))
        with current(self.ordinal):
            checked(CUDA.cuMemcpyDtoHAsync_v2(data, self.address, ctypes.c_size_t(self.count), None))
        return data.raw[: self.count]


class DeviceArray:
    """A copy, on a device, of an array of NumPy and of all memory that it is a view of."""

    def __init__(self, array, ordinal=0):
        whole = array
        while isinstance(whole.base, np.ndarray):
            whole = whole.base
        self.memory, self.ordinal = Memory(whole.nbytes, ordinal), ordinal
        self.memory.set(whole.tobytes(order="K"))
        self.array, self.whole = array, whole
        self.offset = array.__array_interface__["data"][0] - whole.__array_interface__["data"][0] if array.size else 0
        self.dtype, self.shape = array.dtype, array.shape

    def get(self):
        """The array as it is on the device now."""
        whole = np.frombuffer(self.memory.get(), "u1")
        return np.ndarray(self.array.shape, self.array.dtype, whole, self.offset, self.array.strides)

    @property
    def address(self):
        return self.memory.address.value + self.offset


class Interface(DeviceArray):
    """With `__cuda_array_interface__`."""

    stream = None

    @property
    def __cuda_array_interface__(self):
        found = {"shape": self.shape, "typestr": self.dtype.str, "data": (self.address, False), "version": 3}
        return found | {"strides": self.array.strides, "stream": self.stream}


class Buffered(Interface, bytearray):
    """The same with a buffer, which does not have the bytes: arrays of CuPy have one that refuses."""


class Tensor(ctypes.Structure):
    """`DLTensor`."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("kind", ctypes.c_int32),
        ("ordinal", ctypes.c_int32),
        ("axes", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class Managed(ctypes.Structure):
    """`DLManagedTensorVersioned`."""

    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", Tensor),
    ]


# Capsules point to their names.
VERSIONED, EXCHANGE = b"dltensor_versioned", b"dlpack_exchange_api"
capsule = ctypes.pythonapi.PyCapsule_New
capsule.restype, capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


def described(array, tensor):
    """Fills a `DLTensor`; returns what it points to."""
    axes = len(array.shape)
    shape = (ctypes.c_int64 * axes)(*array.shape)
    strides = (ctypes.c_int64 * axes)(*(stride // array.dtype.itemsize for stride in array.array.strides))
    code = {"i": 0, "u": 1, "f": 2, "c": 5}[array.dtype.kind]
    values = (array.address, 2, array.ordinal, axes, code, 8 * array.dtype.itemsize, 1, shape, strides, 0)
    for (name, _), value in zip(Tensor._fields_, values):
        setattr(tensor, name, ctypes.cast(value, ctypes.POINTER(ctypes.c_int64)) if name in ("shape", "strides") else value)
    return shape, strides


class Exporter(DeviceArray):
    """With `__dlpack__`."""

    asked = None

    def __dlpack_device__(self):
        return (2, self.ordinal)

    def __dlpack__(self, *, stream=None, max_version=None):
        self.asked = stream
        self.managed = Managed(1, 3)
        self.kept = described(self, self.managed.tensor)
        return capsule(ctypes.addressof(self.managed), VERSIONED, None)


class Functions(ctypes.Structure):
    """`DLPackExchangeAPI`."""

    _fields_ = [(name, ctypes.c_void_p) for name in ("version", "previous", "allocate", "from_object", "to_object", "view", "stream")]


@ctypes.CFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(Tensor))
def view(array, tensor):
    array.kept = described(array, tensor.contents)
    return 0


@ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p))
def current_stream(kind, ordinal, stream):
    Exchanged.asked += 1
    stream[0] = Exchanged.current
    return 0


FUNCTIONS = Functions(1 | 3 << 32, None, None, None, None, ctypes.cast(view, ctypes.c_void_p), ctypes.cast(current_stream, ctypes.c_void_p))


class Exchanged(DeviceArray):
    """With the C exchange API, as tensors of PyTorch have it."""

    asked, current = 0, None
    requires_grad = False
    __dlpack_c_exchange_api__ = capsule(ctypes.addressof(FUNCTIONS), EXCHANGE, None)

    def is_conj(self):
        return False

    def is_neg(self):
        return False


Exchanged.__module__ = "torch"


class Attributed(Interface):
    """With the attributes of an array of CuPy, which has the other protocols, too."""

    @property
    def data(self):
        return types.SimpleNamespace(ptr=self.address, device_id=self.ordinal)

    @property
    def strides(self):
        return self.array.strides

    @property
    def itemsize(self):
        return self.dtype.itemsize

    @property
    def __cuda_array_interface__(self):
        raise AssertionError("the attributes are read")


Attributed.__module__, Attributed.__name__ = "cupy", "ndarray"
# The function of the framework for its current stream.
sys.modules["cupy"] = types.ModuleType("cupy")
sys.modules["cupy.cuda"] = sys.modules["cupy"].cuda = types.ModuleType("cupy.cuda")
sys.modules["cupy.cuda"].get_current_stream = lambda ordinal: types.SimpleNamespace(ptr=0)

pointer = ctypes.pythonapi.PyCapsule_GetPointer
pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
# The managed tensors of capsules, by address, with the array and what else they point to.
OWNERS = {}


@ctypes.CFUNCTYPE(None, ctypes.c_void_p)
def let_go(made):
    # The capsule is being freed, so it is no object to count references of.
    find = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))
    del OWNERS[find(made, VERSIONED)]


class Unchanging(Exporter):
    """As an array of JAX: it is never written after it was made, and its framework makes others on a stream of its own."""

    stream = None
    taken_on = None

    def __dlpack__(self, *, stream=None, max_version=None):
        self.asked = stream
        managed = Managed(1, 3)
        # The capsule keeps the array, as those of frameworks do.
        OWNERS[ctypes.addressof(managed)] = (managed, self, described(self, managed.tensor))
        return capsule(ctypes.addressof(managed), VERSIONED, ctypes.cast(let_go, ctypes.c_void_p))

    @property
    def device(self):
        return self.ordinal

    def __array_namespace__(self):
        return Namespace


class Namespace:
    """The functions of that framework."""

    uint8 = np.dtype("u1")

    @staticmethod
    def zeros(shape, dtype, device):
        return Unchanging(np.zeros(shape, dtype), device)

    empty = zeros

    @staticmethod
    def from_dlpack(made):
        assert made.__dlpack_device__() == (2, 0)
        Unchanging.stream = Unchanging.stream or new_stream()
        taken = made.__dlpack__(stream=Unchanging.stream, max_version=(1, 0))
        array = OWNERS[pointer(taken, VERSIONED)][1]
        array.taken_on = array.asked
        return array


Unchanging.__module__ = "jaxlib._jax"


def new_stream():
    """A stream of the device."""
    stream = ctypes.c_void_p()
    with current():
        checked(CUDA.cuStreamCreateWithPriority(ctypes.byref(stream), 1, 0))
    return stream.value
