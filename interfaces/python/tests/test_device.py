"""Arrays on a GPU that the processor emulates, by each protocol. tests/tests/python.rs runs them."""

import os
import random
import weakref

import numpy as np
import pytest

import device
import libdtc

pytestmark = pytest.mark.skipif("EMULATOR_FOLDER" not in os.environ, reason="needs the emulated GPU")
PROTOCOLS = [device.Interface, device.Buffered, device.Exporter, device.Exchanged, device.Attributed]


def drawn(draw, shape, dtype="f4"):
    count = int(np.prod(shape)) * np.dtype(dtype).itemsize
    return np.frombuffer(draw.randbytes(count), dtype).reshape(shape).copy()


def poisoned(shape, dtype="f4"):
    return np.frombuffer(b"\xa5" * (int(np.prod(shape)) * np.dtype(dtype).itemsize), dtype).reshape(shape).copy()


PARTS = [
    ((6, 7, 8), np.s_[:, :, 1]),
    ((6, 7, 8), np.s_[1:-1, 1:-1, 1:-1]),
    ((40,), np.s_[::2]),
    ((9, 5), np.s_[::-1, 1:3]),
    ((3, 4), np.s_[:0]),
    ((3, 4), np.s_[:]),
]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(("shape", "part"), PARTS)
@pytest.mark.parametrize("dtype", ["u1", "f4", "f8"])
def test_packs(protocol, shape, part, dtype):
    draw = random.Random(str((shape, part, dtype)))
    array = drawn(draw, shape, dtype)
    x = protocol(array)
    layout, wanted = libdtc.layout(x)[part], array[part]
    out = protocol(poisoned(wanted.shape, dtype))
    assert layout.pack(x, out) is out and out.get().tobytes() == wanted.tobytes()
    target, expected = protocol(poisoned(shape, dtype)), poisoned(shape, dtype)
    expected[part] = wanted
    layout.unpack(out, target)
    assert target.get().tobytes() == expected.tobytes()
    other = protocol(poisoned(tuple(2 * n for n in wanted.shape), dtype))
    index = (*(slice(None, None, 2) for _ in wanted.shape), ...)
    expected = other.get().copy()
    expected[index] = wanted
    libdtc.copy(other, libdtc.layout(other)[index], x, layout)
    assert other.get().tobytes() == expected.tobytes()


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("dtype", ["i4", "i8"])
def test_tables(protocol, dtype):
    draw = random.Random(dtype)
    array = drawn(draw, (3, 10, 4))
    x = protocol(array)
    layout = libdtc.layout(x)[:, libdtc.index("blocks", max=12)]
    table = np.array([draw.randrange(10) for _ in range(12)], dtype)
    out = protocol(poisoned((3, 12, 4)))
    layout.pack(x, out, blocks=protocol(table))
    assert out.get().tobytes() == array[:, table].tobytes()
    out = protocol(poisoned((3, 12, 4)))
    layout.pack(x, out, blocks=table)
    assert out.get().tobytes() == array[:, table].tobytes()

    skipped = table.copy()
    skipped[::3] = -1
    skipped[1] = 99
    out, expected = protocol(poisoned((3, 12, 4))), poisoned((3, 12, 4))
    named = (skipped >= 0) & (skipped < 10)
    expected[:, named] = array[:, skipped[named]]
    layout.pack(x, out, blocks=protocol(skipped))
    assert out.get().tobytes() == expected.tobytes()
    with pytest.raises(IndexError, match=r"blocks\[1\]: expected an index below 10, found 99"):
        layout.pack(x, out, blocks=skipped)

    unique = np.array(draw.sample(range(10), 5), dtype)
    packed = drawn(draw, (3, 5, 4))
    target, expected = protocol(poisoned((3, 10, 4))), poisoned((3, 10, 4))
    expected[:, unique] = packed
    layout.unpack(protocol(packed), target, blocks=protocol(unique))
    assert target.get().tobytes() == expected.tobytes()
    rows = protocol(poisoned((5, 4)))
    there = libdtc.layout(rows)[libdtc.index("rows", max=5)]
    order = np.array([4, 2, 0, 1, 3], dtype)
    expected = np.empty((5, 4), "f4")
    expected[order] = array[1, unique]
    libdtc.copy(rows, there, x, layout[1], rows=protocol(order), blocks=protocol(unique))
    assert rows.get().tobytes() == expected.tobytes()


def test_batches():
    draw = random.Random(7)
    fields = [drawn(draw, (5, 6, 7)) for _ in range(2)]
    arrays = [device.Interface(field) for field in fields]
    parts = [np.s_[0], np.s_[:, -1], np.s_[..., ::2], np.s_[1:, 1:, 1:]]
    layouts = [libdtc.layout(arrays[0])[part] for part in parts]
    outs = [device.Interface(poisoned(layout.shape)) for layout in layouts]
    batch = libdtc.Batch([(layout, arrays[0], out) for layout, out in zip(layouts, outs)])
    stream = device.new_stream()
    for field, array in zip([*fields, fields[0]], [*arrays, arrays[0]]):
        for at in range(len(batch)):
            batch.move(at, array)
        batch.run(stream)
        assert all(out.get().tobytes() == field[part].tobytes() for part, out in zip(parts, outs))
    target, expected = device.Interface(poisoned((5, 6, 7))), poisoned((5, 6, 7))
    libdtc.Batch(unpacks=[(layout, out, target) for layout, out in zip(layouts, outs)]).run()
    for part in parts:
        expected[part] = fields[0][part]
    assert target.get().tobytes() == expected.tobytes()
    with pytest.raises(libdtc.LayoutError, match="item 0: expected memory that GPU 0 reaches, found"):
        batch.move(0, out=np.zeros((6, 7), "f4"))
    with pytest.raises(libdtc.LayoutError, match="item 0: expected memory that GPU 0 reaches, found"):
        batch.move(0, device.Interface(fields[0], ordinal=1))


def test_streams():
    array = drawn(random.Random(8), (4, 4))
    layout = libdtc.layout(array)[:, 1]
    x, out = device.Exchanged(array), device.Exchanged(poisoned(4))
    device.Exchanged.asked, device.Exchanged.current = 0, device.new_stream()
    layout.pack(x, out)
    assert device.Exchanged.asked == 1
    layout.pack(x, out, stream=device.new_stream())
    assert device.Exchanged.asked == 1
    other = device.Exporter(array)
    layout.pack(other, out)
    assert other.asked == 1

    class Stream:
        def __cuda_stream__(self):
            return (self.version, device.new_stream())

    given = Stream()
    given.version = 0
    layout.pack(x, out, stream=given)
    given.version = 1
    with pytest.raises(libdtc.LayoutError, match="stream: expected version 0 of __cuda_stream__, found 1"):
        layout.pack(x, out, stream=given)
    with pytest.raises(TypeError, match="stream: expected None, an int or an object with __cuda_stream__"):
        layout.pack(x, out, stream="s")
    with pytest.raises(libdtc.LayoutError, match="out: expected an array, since there is a stream, found None"):
        layout.pack(x, stream=1)
    assert out.get().tobytes() == array[:, 1].tobytes()


def test_refused():
    array = drawn(random.Random(9), (4, 4))
    layout = libdtc.layout(array)[:, 1]
    x = device.Exchanged(array)
    x.requires_grad = True
    with pytest.raises(libdtc.LayoutError, match="x: expected a tensor that requires no gradient"):
        layout.pack(x, device.Exchanged(poisoned(4)))
    with pytest.raises((libdtc.LayoutError, libdtc.CudaError)):
        layout.pack(device.Interface(array), np.zeros(4, "f4"))
    with pytest.raises(libdtc.LayoutError, match="out: expected memory apart from that of x"):
        x = device.Interface(array)
        libdtc.layout(x).pack(x, x)
    with pytest.raises(TypeError, match="out: expected an array of shape"):
        layout.pack(device.Interface(array))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_forked_child_is_refused(protocol):
    array = drawn(random.Random(10), (4, 4))
    layout, x, out = libdtc.layout(array)[:, 1], protocol(array), protocol(poisoned(4))
    layout.pack(x, out)
    reads, writes = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            said = "packed on the host" if layout.pack(array).tobytes() == array[:, 1].tobytes() else "wrong bytes"
            layout.pack(x, out)
            said += ", and on the GPU"
        except libdtc.CudaError as error:
            said += f", {error}"
        finally:
            os.write(writes, said.encode())
            os._exit(0)
    os.waitpid(child, 0)
    said = os.read(reads, 1000).decode()
    assert said.startswith("packed on the host, ") and "fork" in said, said


def test_arrays_that_never_change():
    array = drawn(random.Random(12), (6, 7, 8))
    x = device.Unchanging(array)
    layout = libdtc.layout(x)[:, :, 1]
    packed = layout.pack(x)
    assert isinstance(packed, device.Unchanging) and packed.get().tobytes() == array[:, :, 1].tobytes()
    # The producers let the legacy default stream wait, and the framework its own stream.
    assert x.asked == 1 and packed.taken_on == device.Unchanging.stream
    expected = np.zeros_like(array)
    expected[:, :, 1] = array[:, :, 1]
    assert layout.unpack(packed).get().tobytes() == expected.tobytes()
    with pytest.raises(libdtc.LayoutError, match="out: expected an array that may be written"):
        layout.pack(x, device.Unchanging(poisoned((6, 7))))
    rows = libdtc.layout(x)[libdtc.index("rows", max=4)]
    table = device.Unchanging(np.array([5, 0, 3], "i4"))
    assert rows.pack(x, rows=table).get().tobytes() == array[[5, 0, 3]].tobytes()


def test_held_until_the_stream_has_run():
    layout = libdtc.layout((40, 8), "f4")[:, ::2]
    for protocol, is_held in ((device.Unchanging, True), (device.Interface, False)):
        alive = []
        for number in range(3):
            x, out = protocol(drawn(random.Random(number), (40, 8))), device.Interface(poisoned((40, 4)))
            layout.pack(x, out)
            alive.append(weakref.ref(x))
            del x
            # A call lets go of what calls before it have held, and holds its own.
            assert [reference() is not None for reference in alive] == [False] * number + [is_held]
        protocol(drawn(random.Random(4), (40, 8)))
