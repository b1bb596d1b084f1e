"""Checks and timings of libdtc on a CUDA GPU, with PyTorch and, where they are there, CuPy and JAX: one table at the end.

    python gpu.py [--quick]

Inputs are random, outputs are poisoned before, and every byte is compared. Ends with an error if a check fails.
"""

import argparse
import os
import statistics
import sys
import time
import traceback

import numpy as np
import torch

import libdtc

try:
    import cupy
except ImportError:
    cupy = None

POISON = 0xA5
GENERATOR = None


def drawn(shape, dtype):
    """A tensor of random bytes, as no type of numbers compares all of them."""
    item = torch.empty(0, dtype=dtype).element_size()
    shape = tuple(shape)
    raw = torch.randint(0, 256, (*shape[:-1], shape[-1] * item), dtype=torch.uint8, device="cuda", generator=GENERATOR)
    return raw.view(dtype)


def poisoned(shape, dtype, device="cuda", **options):
    tensor = torch.empty(shape, dtype=dtype, device=device, **options)
    tensor.view(-1).view(torch.uint8).fill_(POISON) if tensor.numel() else None
    return tensor


def same(one, other):
    one, other = one.contiguous().view(-1), other.contiguous().view(-1)
    return one.numel() == other.numel() and bool((one.view(torch.uint8).cpu() == other.view(torch.uint8).cpu()).all())


def must(condition, what="bytes differ"):
    if not condition:
        raise AssertionError(what)


PARTS = [
    ("all", (5, 6, 7), lambda a: a),
    ("column", (300, 40), lambda a: a[:, 3]),
    ("face", (20, 30, 40), lambda a: a[:, :, 1]),
    ("interior", (20, 30, 40), lambda a: a[1:-1, 1:-1, 1:-1]),
    ("every other", (1000,), lambda a: a[::2]),
    ("transpose", (130, 257), lambda a: a.T),
    ("heads", (33, 8, 64), lambda a: permuted(a, (1, 0, 2))),
    ("reversed axes", (9, 17, 33), lambda a: permuted(a, (2, 1, 0))),
    ("one element", (3, 3), lambda a: a[1:2, 1:2]),
    ("no elements", (3, 3), lambda a: a[:0]),
]
TYPES = [torch.uint8, torch.bfloat16, torch.float32, torch.float64, torch.complex128]


def permuted(a, axes):
    return a.permute(*axes)


def check_packs():
    for name, shape, part in PARTS:
        for dtype in TYPES:
            x = drawn(shape, dtype)
            layout, view = part(libdtc.layout(x)), part(x)
            must(layout.shape == tuple(view.shape), name)
            out = poisoned(view.shape, dtype)
            must(layout.pack(x, out) is out and same(out, view), f"pack of {name}, {dtype}")
            fresh = layout.pack(x)
            must(fresh.dtype == dtype and fresh.is_cuda and same(fresh, view), f"new pack of {name}, {dtype}")
            target, expected = poisoned(shape, dtype), poisoned(shape, dtype)
            part(expected).copy_(out)
            must(layout.unpack(out, target) is target and same(target, expected), f"unpack of {name}, {dtype}")
            other = poisoned(tuple(2 * n for n in view.shape), dtype)
            wanted = other.clone()
            index = (*(slice(None, None, 2) for _ in view.shape), ...)
            wanted[index].copy_(view)
            libdtc.copy(other, libdtc.layout(other)[index], x, layout)
            must(same(other, wanted), f"copy of {name}, {dtype}")


def check_pinned():
    x = drawn((64, 65), torch.float32)
    layout = libdtc.layout(x).T
    host = poisoned((65, 64), torch.float32, "cpu", pin_memory=True)
    layout.pack(x, host)
    torch.cuda.synchronize()
    must(same(host, x.T), "pack to pinned memory")
    back = poisoned((64, 65), torch.float32)
    layout.unpack(host, back)
    torch.cuda.synchronize()
    must(same(back, x), "unpack from pinned memory")
    pageable = torch.empty((65, 64))
    try:
        layout.pack(x, pageable)
        torch.cuda.synchronize()
        must(same(pageable, x.T), "a pack to pageable memory that was not refused")
    except (libdtc.LayoutError, libdtc.CudaError):
        pass


def check_current_stream():
    side = torch.cuda.Stream()
    x, new = drawn((512, 512), torch.float32), drawn((512, 512), torch.float32)
    layout, out = libdtc.layout(x)[:, ::2], poisoned((512, 256), torch.float32)
    layout.pack(x, out)
    torch.cuda.synchronize()
    for given in (None, "torch", "int"):
        x.zero_()
        out.fill_(0)
        torch.cuda.synchronize()
        with torch.cuda.stream(side):
            torch.cuda._sleep(50_000_000)
            x.copy_(new)
            if given is None:
                layout.pack(x, out)
        if given == "int":
            layout.pack(x, out, stream=side.cuda_stream)
        elif given == "torch":
            layout.pack(x, out, stream=side if hasattr(side, "__cuda_stream__") else side.cuda_stream)
        must(not side.query(), "the call waited for the stream")
        side.synchronize()
        must(same(out, new[:, ::2]), f"order on the stream, given {given}")


def check_lifetime():
    """A tensor that dies right after its pack was enqueued: its memory is taken anew by work of the same stream."""
    layout = libdtc.layout((1024, 1024), "f4").T
    expected, outs = [], []
    for _ in range(20):
        x = drawn((1024, 1024), torch.float32)
        expected.append(x.T.contiguous())
        out = poisoned((1024, 1024), torch.float32)
        layout.pack(x, out)
        del x
        poisoned((1024, 1024), torch.float32)
        outs.append(out)
    must(all(same(out, wanted) for out, wanted in zip(outs, expected)), "tensors that died")


def check_capture():
    x = drawn((256, 64), torch.float32)
    table = torch.arange(16, dtype=torch.int32, device="cuda")
    fixed = libdtc.layout(x)[:, ::2]
    rows = libdtc.layout(x)[libdtc.index("rows", max=16)]
    out, picked = poisoned((256, 32), torch.float32), poisoned((16, 64), torch.float32)
    fixed.pack(x, out)
    rows.pack(x, picked, rows=table)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        fixed.pack(x, out)
        rows.pack(x, picked, rows=table)
    for _ in range(3):
        x.copy_(drawn((256, 64), torch.float32))
        table.copy_(torch.randint(0, 256, (16,), dtype=torch.int32, device="cuda", generator=GENERATOR))
        out.fill_(0)
        picked.fill_(0)
        graph.replay()
        torch.cuda.synchronize()
        must(same(out, x[:, ::2]) and same(picked, x[table.long()]), "a replay")


def check_tables():
    for dtype in (torch.int32, torch.int64):
        for kind in (torch.uint8, torch.bfloat16, torch.float32):
            x = drawn((5, 40, 3, 16), kind)
            layout = libdtc.layout(x)[:, libdtc.index("blocks", max=64)]
            table = torch.randint(0, 40, (50,), device="cuda", generator=GENERATOR).to(dtype)
            out = poisoned((5, 50, 3, 16), kind)
            layout.pack(x, out, blocks=table)
            must(same(out, x.index_select(1, table.long())), f"pack by a table of {dtype}, {kind}")
            must(same(layout.pack(x, blocks=table.cpu().numpy()), out), "a table in memory of the host")
            moved = layout.permute(1, 0, 2, 3)
            must(same(moved.pack(x, blocks=table), out.transpose(0, 1)), "permuted")
            unique = torch.randperm(40, device="cuda", generator=GENERATOR)[:30].to(dtype)
            target, expected = poisoned(x.shape, kind), poisoned(x.shape, kind)
            expected[:, unique.long()] = out[:, :30]
            layout.unpack(out[:, :30].contiguous(), target, blocks=unique)
            must(same(target, expected), f"unpack by a table of {dtype}, {kind}")
            skipped = table.clone()
            skipped[::3] = -1
            out, expected = poisoned((5, 50, 3, 16), kind), poisoned((5, 50, 3, 16), kind)
            named = (skipped >= 0).nonzero()[:, 0]
            expected[:, named] = x[:, skipped[named].long()]
            layout.pack(x, out, blocks=skipped)
            must(same(out, expected), "skipped entries")
    x, y = drawn((30, 8), torch.float32), poisoned((8, 20), torch.float32)
    rows, columns = libdtc.index("rows", max=20), libdtc.index("columns", max=20)
    source, target = (torch.randperm(n, device="cuda", generator=GENERATOR)[:12] for n in (30, 20))
    expected = y.clone()
    expected[:, target] = x[source].T
    libdtc.copy(y, libdtc.layout(y)[:, columns].T, x, libdtc.layout(x)[rows], rows=source, columns=target)
    must(same(y, expected), "a copy between tables")


def check_batch():
    fields = [drawn((34, 35, 36), torch.float64) for _ in range(2)]
    whole = libdtc.layout(fields[0])
    ends = {-1: slice(0, 1), 0: slice(1, -1), 1: slice(-1, None)}
    parts = [tuple(ends[n] for n in (i, j, k)) for i in ends for j in ends for k in ends if (i, j, k) != (0, 0, 0)]
    outs = [poisoned(fields[0][part].shape, torch.float64) for part in parts]
    batch = libdtc.Batch([(whole[part], fields[0], out) for part, out in zip(parts, outs)])
    for field in (fields[0], fields[1], fields[0]):
        for i, out in enumerate(outs):
            out.fill_(0)
            batch.move(i, field)
        batch.run()
        must(all(same(out, field[part]) for part, out in zip(parts, outs)), "a batch of packs")
    target, expected = poisoned(fields[0].shape, torch.float64), poisoned(fields[0].shape, torch.float64)
    for part, out in zip(parts, outs):
        expected[part] = out
    libdtc.Batch(unpacks=[(whole[part], out, target) for part, out in zip(parts, outs)]).run()
    must(same(target, expected), "a batch of unpacks")


def check_refused():
    x = drawn((8, 8), torch.float32)
    layout = libdtc.layout(x)[:, 1]
    for wrong in (x.T, x.double(), x[:, :4]):
        try:
            layout.pack(wrong)
        except libdtc.LayoutError:
            continue
        raise AssertionError("a tensor that does not fit was packed")
    try:
        layout.pack(x.clone().requires_grad_())
    except (libdtc.LayoutError, BufferError):
        pass
    else:
        raise AssertionError("a tensor that requires a gradient was packed")
    turned = torch.complex(x, x).conj()
    try:
        libdtc.layout(turned)
    except (libdtc.LayoutError, BufferError, RuntimeError):
        pass
    else:
        raise AssertionError("a tensor with a pending conjugation was taken")


def check_fork():
    x = drawn((8, 8), torch.float32)
    layout = libdtc.layout(x)[:, 1]
    layout.pack(x)
    torch.cuda.synchronize()
    child = os.fork()
    if child == 0:
        host = np.arange(64.0, dtype="f4").reshape(8, 8)
        good = (layout.pack(host) == host[:, 1]).all()
        try:
            layout.pack(x, stream=0, out=x[0])
            good = False
        except (libdtc.CudaError, libdtc.LayoutError, RuntimeError):
            pass
        os._exit(0 if good else 1)
    must(os.waitpid(child, 0)[1] == 0, "a forked child")


def check_cupy():
    if cupy is None:
        raise SkipCheck("CuPy is not there")
    x = cupy.frombuffer(np.random.default_rng(5).bytes(64 * 96 * 4), dtype="f4").reshape(64, 96)
    plain = cupy.asnumpy(x)
    layout = libdtc.layout(x)[::2, 5:]
    packed = layout.pack(x)
    must(isinstance(packed, cupy.ndarray) and cupy.asnumpy(packed).tobytes() == plain[::2, 5:].tobytes(), "pack")
    back = cupy.zeros_like(x)
    layout.unpack(packed, back)
    expected = np.zeros_like(plain)
    expected[::2, 5:] = plain[::2, 5:]
    must(cupy.asnumpy(back).tobytes() == expected.tobytes(), "unpack")
    flipped = libdtc.layout(x)[::-1, ::-3]
    must(cupy.asnumpy(flipped.pack(x)).tobytes() == plain[::-1, ::-3].tobytes(), "negative strides")
    stream = cupy.cuda.Stream(non_blocking=True)
    out = cupy.zeros((32, 91), "f4")
    cupy.cuda.Device().synchronize()
    with stream:
        layout.pack(x, out)
    stream.synchronize()
    must(cupy.asnumpy(out).tobytes() == plain[::2, 5:].tobytes(), "the current stream of CuPy")
    table = cupy.array([7, 3, 63, 0], "i4")
    rows = libdtc.layout(x)[libdtc.index("rows", max=8)]
    must(cupy.asnumpy(rows.pack(x, rows=table)).tobytes() == plain[[7, 3, 63, 0]].tobytes(), "a table")
    out.fill(0)
    cupy.cuda.Device().synchronize()
    with stream:
        stream.begin_capture()
        layout.pack(x, out)
        graph = stream.end_capture()
        graph.launch()
    stream.synchronize()
    must(cupy.asnumpy(out).tobytes() == plain[::2, 5:].tobytes(), "a graph of CuPy")
    records = np.zeros(100, [("x", "f8"), ("tag", "i4"), ("v", "f4", (3,))])
    records["x"], records["v"] = np.arange(100), np.arange(300).reshape(100, 3)
    try:
        device = cupy.array(records)
    except (TypeError, ValueError):
        return
    must(cupy.asnumpy(libdtc.layout(device)["v"].pack(device)).tobytes() == records["v"].tobytes(), "fields")


def check_jax():
    try:
        # A part of the device's memory stays for the other frameworks.
        os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
        import jax
        import jax.numpy as jnp

        device = jax.devices("cuda")[0]
    except (ImportError, RuntimeError) as reason:
        raise SkipCheck("JAX is not there, or has no GPU") from reason
    random = np.random.default_rng(6)
    for dtype in ("f4", "bfloat16", "i1", "c8"):
        plain = np.asarray(jnp.asarray(random.integers(-100, 100, (130, 60, 70))).astype(dtype))
        x = jax.device_put(plain, device)
        layout = libdtc.layout(x)[1:-1, ::2, 3]
        packed = layout.pack(x)
        must(isinstance(packed, jax.Array) and packed.devices() == {device} and packed.dtype == x.dtype, "a result of JAX")
        must(np.asarray(packed).tobytes() == plain[1:-1, ::2, 3].tobytes(), "pack")
        expected = np.zeros_like(plain)
        expected[1:-1, ::2, 3] = plain[1:-1, ::2, 3]
        must(np.asarray(layout.unpack(packed)).tobytes() == expected.tobytes(), "unpack")
        rows = libdtc.layout(x)[libdtc.index("rows", max=4)]
        must(np.asarray(rows.pack(x, rows=jax.device_put(np.array([7, 129, 0], "i4"), device))).tobytes() == plain[[7, 129, 0]].tobytes(), "a table")
    # Each result is used by JAX and dies before anything has run: no other array may get memory that is still in use.
    step, consume = jax.jit(lambda a, n: a * 3 + n), jax.jit(lambda a: a.sum(axis=0, dtype="i4"))
    plain = random.integers(-(2**30), 2**30, (4096, 4096), dtype="i4")
    x = jax.device_put(plain, device)
    column = libdtc.layout(x)[:, ::2]
    sums = [consume(column.pack(step(x, number))) for number in range(40)]
    for number, found in enumerate(sums):
        with np.errstate(over="ignore"):
            expected = (plain[:, ::2] * np.int32(3) + np.int32(number)).sum(axis=0, dtype="i4")
        must(np.array_equal(np.asarray(found), expected), f"order and lifetimes, step {number}")
    try:
        column.pack(x, jnp.zeros((4096, 2048), "i4"))
    except libdtc.LayoutError as error:
        must("read-only" in str(error), str(error))
    else:
        raise AssertionError("an array of JAX was written")


class SkipCheck(Exception):
    """What a check needs is not there."""


def enqueue_ns(call, rounds=30, repeat=200):
    """Nanoseconds that the processor takes for a call, with the device idle before each round."""
    call()
    found = []
    for _ in range(rounds):
        torch.cuda.synchronize()
        start = time.perf_counter_ns()
        for _ in range(repeat):
            call()
        found.append((time.perf_counter_ns() - start) / repeat)
    torch.cuda.synchronize()
    return statistics.median(found)


def device_us(call, rounds=7, repeat=10):
    """Microseconds on the device of one call: the least of `rounds` rounds."""
    call()
    torch.cuda.synchronize()
    found = []
    for _ in range(rounds):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        for _ in range(repeat):
            call()
        end.record()
        end.synchronize()
        found.append(begin.elapsed_time(end) * 1e3 / repeat)
    return min(found)


def overheads():
    x, out = drawn((64, 64), torch.float32), poisoned((64,), torch.float32)
    layout, view = libdtc.layout(x)[:, 1], x[:, 1]
    handle = torch.cuda.current_stream().cuda_stream
    rows = libdtc.layout(x)[libdtc.index("rows", max=8)]
    table, picked = torch.arange(8, device="cuda"), poisoned((8, 64), torch.float32)
    yield "layout.pack(x, out)", enqueue_ns(lambda: layout.pack(x, out))
    yield "layout.pack(x, out, stream=handle)", enqueue_ns(lambda: layout.pack(x, out, stream=handle))
    yield "out.copy_(view)", enqueue_ns(lambda: out.copy_(view))
    yield "out.copy_(x[:, 1])", enqueue_ns(lambda: out.copy_(x[:, 1]))
    yield "layout.pack(x)", enqueue_ns(lambda: layout.pack(x))
    yield "x[:, 1].contiguous()", enqueue_ns(lambda: x[:, 1].contiguous())
    yield "rows.pack(x, out, rows=table)", enqueue_ns(lambda: rows.pack(x, picked, rows=table))
    yield "torch.index_select(x, 0, table, out=out)", enqueue_ns(lambda: torch.index_select(x, 0, table, out=picked))
    if cupy is not None:
        y, target = cupy.asarray(x), cupy.asarray(out)
        yield "layout.pack(x, out), CuPy", enqueue_ns(lambda: layout.pack(y, target))
        yield "out[...] = x[:, 1], CuPy", enqueue_ns(lambda: target.__setitem__(..., y[:, 1]))


def cases(quick):
    """Name, cache, the axis that blocks are listed of, how many are listed, and the order wanted of the axes."""
    scale = 8 if quick else 1
    blocks = 512 // scale
    yield "A, layers first", (32, 2, 4 * blocks, 16, 8, 128), torch.bfloat16, 2, blocks, None
    yield "A, blocks first", (32, 2, 4 * blocks, 16, 8, 128), torch.bfloat16, 2, blocks, (2, 0, 1, 3, 4, 5)
    yield "B, layers first", (80, 2, 4 * blocks, 16, 1, 128), torch.bfloat16, 2, blocks, None
    yield "B, blocks first", (80, 2, 4 * blocks, 16, 1, 128), torch.bfloat16, 2, blocks, (2, 0, 1, 3, 4, 5)
    yield "D, 656 bytes", (61, 4 * 32768 // scale, 656), torch.uint8, 1, 32768 // scale, None
    yield "D, 576 bytes", (61, 4 * 32768 // scale, 576), torch.uint8, 1, 32768 // scale, None


def caches(quick):
    """Microseconds of gathers and scatters of blocks of caches, libdtc's and PyTorch's."""
    for name, shape, dtype, axis, count, order in cases(quick):
        cache = drawn(shape, dtype)
        table = torch.randperm(shape[axis], device="cuda", generator=GENERATOR)[:count]
        index = [slice(None)] * len(shape)
        index[axis] = libdtc.index("blocks", max=count)
        layout = libdtc.layout(cache)[tuple(index)]
        wanted = list(shape)
        wanted[axis] = count
        straight = poisoned(wanted, dtype)
        if order is None:
            out, peer = poisoned(wanted, dtype), lambda: torch.index_select(cache, axis, table, out=straight)
        else:
            layout = layout.permute(*order)
            out = poisoned([wanted[at] for at in order], dtype)
            turned = torch.empty_like(out)

            def peer():
                turned.copy_(torch.index_select(cache, axis, table, out=straight).permute(*order))

        narrow = table.int()
        layout.pack(cache, out, blocks=narrow)
        expected = cache.index_select(axis, table)
        expected = expected if order is None else expected.permute(*order)
        must(torch.equal(out.view(torch.uint8), expected.contiguous().view(torch.uint8)), f"{name}: a gather")
        ours = device_us(lambda: layout.pack(cache, out, blocks=narrow))
        theirs = device_us(peer)
        yield f"{name}: gather", out.nbytes, ours, theirs
        del expected
        target = torch.zeros_like(cache)
        layout.unpack(out, target, blocks=narrow)
        places = [slice(None)] * len(shape)
        places[axis] = table
        back = target[tuple(places)]
        must(torch.equal((back if order is None else back.permute(*order)).contiguous().view(torch.uint8), out.view(torch.uint8)), f"{name}: a scatter")
        del back
        ours = device_us(lambda: layout.unpack(out, target, blocks=narrow))
        source = out if order is None else out.permute(*[order.index(at) for at in range(len(order))])
        theirs = device_us(lambda: target.index_copy_(axis, table, source))
        yield f"{name}: scatter", out.nbytes, ours, theirs
        del cache, target, out, straight
        torch.cuda.empty_cache()


def halo(side):
    """Microseconds of 26 pieces of a field in one batch, and of 26 copies."""
    field = drawn((side + 2,) * 3, torch.float64)
    whole = libdtc.layout(field)
    ends = {-1: slice(1, 2), 0: slice(1, -1), 1: slice(-2, -1)}
    parts = [tuple(ends[n] for n in (i, j, k)) for i in ends for j in ends for k in ends if (i, j, k) != (0, 0, 0)]
    outs = [poisoned(field[part].shape, torch.float64) for part in parts]
    batch = libdtc.Batch([(whole[part], field, out) for part, out in zip(parts, outs)])
    batch.run()
    must(all(same(out, field[part]) for part, out in zip(parts, outs)), "a halo")

    def peer():
        for part, out in zip(parts, outs):
            out.copy_(field[part])

    return f"halo of {side}^3, 26 pieces", sum(out.nbytes for out in outs), device_us(batch.run), device_us(peer)


CHECKS = [check_packs, check_pinned, check_current_stream, check_lifetime, check_capture, check_tables, check_batch, check_refused, check_cupy, check_jax, check_fork]


def main():
    global GENERATOR
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="caches of an eighth")
    options = parser.parse_args()
    GENERATOR = torch.Generator("cuda").manual_seed(int(time.time()) & 0xFFFF)
    print(libdtc.doctor(), end="")
    print(f"torch {torch.__version__}, CuPy {cupy and cupy.__version__}, CPython {sys.version.split()[0]}, seed {GENERATOR.initial_seed()}")
    print(f"C exchange API of torch: {hasattr(torch.Tensor, '__dlpack_c_exchange_api__')}\n")
    failed = 0
    for check in CHECKS:
        start = time.perf_counter()
        try:
            check()
            torch.cuda.synchronize()
            print(f"passed   {check.__name__}  {time.perf_counter() - start:.1f} s", flush=True)
        except SkipCheck as reason:
            print(f"skipped  {check.__name__}: {reason}")
        except Exception:
            failed += 1
            print(f"FAILED   {check.__name__}\n{traceback.format_exc()}", flush=True)
    print("\n| call | ns |\n| --- | --- |")
    for name, nanoseconds in overheads():
        print(f"| `{name}` | {nanoseconds:.0f} |", flush=True)
    print("\n| case | MiB | libdtc us | GB/s | PyTorch us | ratio |\n| --- | --- | --- | --- | --- | --- |")
    rows = [*(halo(side) for side in (32, 128, 256)), *caches(options.quick)]
    for name, size, ours, theirs in rows:
        print(f"| {name} | {size / 2**20:.1f} | {ours:.1f} | {2 * size / ours / 1e3:.0f} | {theirs:.1f} | {theirs / ours:.2f} |")
    print(f"\n{len(CHECKS) - failed} passed, {failed} failed")
    sys.exit(failed != 0)


if __name__ == "__main__":
    main()
