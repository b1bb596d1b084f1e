#!/usr/bin/env python3
"""dtc beside the strongest peers on layouts that nobody tuned for, drawn from a seed, on one GPU.

    drawn_peers.py OUT.jsonl [--seed N] [--layouts N] [--mebibytes N] [--seconds N]

Needs libdtc and PyTorch; nvmath-python and cuTENSOR are peers where they are installed. Classes: permutes of 2 to 6 axes, slices and
permuted slices of tensors of up to 6 axes, rows in any order by a list in the type and by a table of the call, ascending runs. Every
result is held against eager PyTorch byte by byte, over poison. Writes a JSON object for each figure, and prints tables. Exits 3 if a
result of dtc was wrong.
"""

import argparse
import ctypes
import json
import math
import os
import random
import statistics
import sys
import time

import torch

import libdtc

ROUNDS = 9
# Calls before the timed ones, a fifth of a second from each other; and of lists.
WARM_UPS, LISTED_WARM_UPS = 4, 12
FLUSH_BYTES = 256 << 20
# A kernel that holds the device this long lets the host enqueue what is timed; in cycles of at most 2 GHz.
HOLD_CYCLES = 400_000
# Memory is read in granules and written in sectors; a sector that is written in part is read first.
GRANULE_BYTES, SECTOR_BYTES = 64, 32
POISON = 0xA5
DTYPES = {1: (torch.uint8, "u1"), 2: (torch.int16, "i2"), 4: (torch.int32, "i4"), 8: (torch.int64, "i8"), 16: (torch.complex128, "c16")}
# Memory of a layout, in multiples of its packed bytes, at most.
SPREAD = 8


class Nest:
    """A tensor, slices of its axes, and an order of them."""

    def __init__(self, name, shape, item, slices, order):
        self.name, self.shape, self.item, self.slices, self.order = name, shape, item, slices, order

    def text(self):
        parts = [f"{s.start}:{s.stop}:{s.step}" if s != slice(None) else ":" for s in self.slices]
        return f"{self.item} B, {'x'.join(map(str, self.shape))}[{','.join(parts)}] axes {' '.join(map(str, self.order))}"

    def view(self, memory):
        return memory[tuple(self.slices)].permute(self.order)

    def elements(self):
        return self.shape

    def layout(self):
        return libdtc.layout(tuple(self.shape), DTYPES[self.item][1])[tuple(self.slices)].permute(*self.order)


class Rows:
    """Rows of a matrix in any order, by a list in the type or by a table of the call."""

    def __init__(self, name, rows, columns, item, chosen, table):
        self.name, self.rows, self.columns, self.item, self.table = name, rows, columns, item, table
        self.index = chosen

    def text(self):
        return f"{self.index.numel()} of {self.rows} rows of {self.columns * self.item} bytes"

    def elements(self):
        return [self.rows, self.columns]

    def layout(self):
        if self.table:
            layout = libdtc.layout((self.rows, self.columns), DTYPES[self.item][1])
            return layout[libdtc.index("rows", max=self.index.numel())]
        row = self.columns * self.item
        places = ", ".join(str(at * row) for at in self.index.tolist())
        return libdtc.load(f"hindexed_block 1 [{places}] (contiguous {row} byte)")


class Runs:
    """Ascending runs of an array."""

    def __init__(self, name, number, item, runs):
        self.name, self.number, self.item, self.runs = name, number, item, runs
        self.index = torch.tensor([at + i for at, length in runs for i in range(length)], dtype=torch.int64)

    def text(self):
        return f"{len(self.runs)} runs of {self.index.numel() * self.item / len(self.runs):.1f} bytes on average"

    def elements(self):
        return [self.number]

    def layout(self):
        runs = ", ".join(f"{length * self.item}@{at * self.item}" for at, length in self.runs)
        return libdtc.load(f"hindexed [{runs}] byte")


def sizes_about(draws, axes, total):
    """Sizes of some axes whose product is about a total; odd ones are as likely as others."""
    weights = [draws.uniform(0.3, 1) for _ in range(axes)]
    scale = math.log(total) / sum(weights)
    sizes = [max(2, round(math.exp(weight * scale))) for weight in weights]
    at = draws.randrange(axes)
    others = math.prod(sizes) // sizes[at]
    sizes[at] = max(2, round(total / others))
    return sizes


def order_of(draws, axes):
    order = list(range(axes))
    while order == sorted(order):
        draws.shuffle(order)
    return order


def drawn_permute(draws, packed):
    item, axes = draws.choice([1, 2, 2, 4, 4, 8, 8, 16]), draws.randint(2, 6)
    shape = sizes_about(draws, axes, packed // item)
    return Nest("permutes", shape, item, [slice(None)] * axes, order_of(draws, axes))


def drawn_slice(draws, packed, permuted):
    item, axes = draws.choice([1, 2, 4, 4, 8, 8, 16]), draws.randint(2, 6)
    sizes = sizes_about(draws, axes, packed // item)
    while True:
        shape, slices = [], []
        for size in sizes:
            kind = draws.choice(["all", "part", "part", "step"])
            step = draws.randint(2, 3) if kind == "step" else 1
            before, after = (0, 0) if kind == "all" else (draws.randint(0, max(1, size // 8)), draws.randint(0, max(1, size // 8)))
            span = (size - 1) * step + 1
            shape.append(before + span + after)
            slices.append(slice(before, before + span, step))
        if math.prod(shape) <= SPREAD * math.prod(sizes):
            break
    order = order_of(draws, axes) if permuted else list(range(axes))
    return Nest("permuted slices" if permuted else "slices", shape, item, slices, order)


def drawn_rows(draws, packed, table):
    item = draws.choice([4, 8])
    columns = round(math.exp(draws.uniform(math.log(256), math.log(32768)))) // item
    count = packed // (columns * item)
    rows = count * draws.randint(1, 4)
    generator = torch.Generator().manual_seed(draws.randrange(1 << 30))
    chosen = torch.randperm(rows, generator=generator)[:count]
    return Rows("rows by table" if table else "rows in any order", rows, columns, item, chosen, table)


def drawn_runs(draws, packed):
    item, most = draws.choice([4, 8]), draws.choice([8, 16, 64, 256])
    count, at, runs = 0, 0, []
    while count < packed // item:
        length = draws.randint(1, most)
        runs.append((at, length))
        at, count = at + length + draws.randint(1, most), count + length
    return Runs("ascending runs", at, item, runs)


CLASSES = [
    drawn_permute,
    drawn_permute,
    lambda draws, packed: drawn_slice(draws, packed, False),
    lambda draws, packed: drawn_slice(draws, packed, True),
    lambda draws, packed: drawn_rows(draws, packed, False),
    lambda draws, packed: drawn_rows(draws, packed, True),
    drawn_runs,
]


def copied(target, source):
    target.copy_(source)


def selected(target, source, index):
    torch.index_select(source, 0, index, out=target)


def stored(target, source, index):
    target.index_copy_(0, index, source)


class Nvmath:
    """Copies by the kernels that nvmath-python makes for layouts."""

    def __init__(self):
        import cupy
        from cuda.core import Device, Stream
        from nvmath.internal.ndbuffer import NDBuffer

        Device(0).set_current()
        self.cupy, self.buffer = cupy, NDBuffer
        self.stream = Stream.from_handle(torch.cuda.current_stream().cuda_stream)

    def copy(self, target, source):
        to, of = (self.buffer.from_cupy(self.cupy.from_dlpack(tensor)) for tensor in (target, source))
        return lambda: to.copy_(of, stream=self.stream)


class Cutensor:
    """`cutensorPermute`, whose plan is made before. The library is found by its name, or by the variable CUTENSOR."""

    # Bytes of an element: its cudaDataType_t, the name of the type to compute in, and the form of the factor.
    TYPES = {2: (2, "32F", ctypes.c_float), 4: (0, "32F", ctypes.c_float), 8: (1, "64F", ctypes.c_double), 16: (5, "64F", 2 * ctypes.c_double)}
    IDENTITY, DEFAULT_ALGORITHM, NO_JIT = 1, -1, 0

    def __init__(self):
        self.library = ctypes.CDLL(os.environ.get("CUTENSOR", "libcutensor.so.2"))
        self.handle = ctypes.c_void_p()
        self.must(self.library.cutensorCreate(ctypes.byref(self.handle)))
        self.stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)

    @staticmethod
    def must(status):
        if status != 0:
            raise RuntimeError(f"cuTENSOR: status {status}")

    def descriptor(self, tensor, kind):
        made, axes = ctypes.c_void_p(), tensor.dim()
        numbers = ctypes.c_int64 * axes
        alignment = math.gcd(tensor.data_ptr(), 128)
        arguments = [ctypes.c_uint32(axes), numbers(*tensor.shape), numbers(*tensor.stride()), ctypes.c_int(kind), ctypes.c_uint32(alignment)]
        self.must(self.library.cutensorCreateTensorDescriptor(self.handle, ctypes.byref(made), *arguments))
        return made

    def copy(self, target, source):
        kind, compute, factor = self.TYPES[target.element_size()]
        modes = (ctypes.c_int32 * source.dim())(*range(source.dim()))
        compute = ctypes.c_void_p.in_dll(self.library, f"CUTENSOR_COMPUTE_DESC_{compute}")
        operation, preference, plan = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        of, to = self.descriptor(source, kind), self.descriptor(target, kind)
        library, by = self.library, ctypes.byref
        self.must(library.cutensorCreatePermutation(self.handle, by(operation), of, modes, self.IDENTITY, to, modes, compute))
        self.must(library.cutensorCreatePlanPreference(self.handle, by(preference), self.DEFAULT_ALGORITHM, self.NO_JIT))
        self.must(library.cutensorCreatePlan(self.handle, by(plan), operation, preference, ctypes.c_uint64(0)))
        one = factor(1.0)
        addresses = ctypes.c_void_p(source.data_ptr()), ctypes.c_void_p(target.data_ptr())
        return lambda: self.must(library.cutensorPermute(self.handle, plan, by(one), *addresses, self.stream))


def peers():
    made = {}
    for name, peer in [("nvmath", Nvmath), ("cuTENSOR", Cutensor)]:
        try:
            made[name] = peer()
        except Exception as error:
            print(f"no {name}: {error!r}"[:300], file=sys.stderr)
    return made


class Clock:
    def __init__(self):
        self.flushed, self.value = torch.empty(FLUSH_BYTES, dtype=torch.uint8, device="cuda"), 0

    def once(self, call):
        self.value = (self.value + 1) % 251
        self.flushed.fill_(self.value)
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda._sleep(HOLD_CYCLES)
        start.record()
        call()
        end.record()
        end.synchronize()
        return start.elapsed_time(end) * 1e3

    def medians(self, calls):
        times = {name: [] for name in calls}
        for _ in range(ROUNDS):
            for name, call in calls.items():
                times[name].append(self.once(call))
        return {name: statistics.median(all) for name, all in times.items()}


def raw(tensor):
    return torch.view_as_real(tensor).view(torch.uint8) if tensor.is_complex() else tensor.view(torch.uint8)


def same(one, other):
    return torch.equal(raw(one.contiguous()), raw(other.contiguous()))


def random_tensor(shape, item):
    dtype = DTYPES[item][0]
    words = torch.randint(0, 256, (math.prod(shape) * item,), dtype=torch.uint8, device="cuda")
    if item > 1:
        # As floating point numbers, elements are finite and normal: cuTENSOR multiplies them by one.
        last = words.view(-1, min(item, 8))[:, -1]
        last.bitwise_and_(0xBF).bitwise_or_(0x20)
    return words.view(dtype).view(shape)


def poison(tensor):
    raw(tensor).fill_(POISON)


def calls_of(case, memory, packed, other, peers):
    """Functions that pack from `memory` to `packed`, and that unpack from `packed` to `other`, by name."""
    torch._dynamo.reset()
    compiled = lambda function: torch.compile(function, dynamic=False, mode="max-autotune-no-cudagraphs")
    layout = case.layout()
    if isinstance(case, Nest):
        of, to = case.view(memory), case.view(other)
        pack = {"dtc": lambda: layout.pack(memory, packed), "eager": lambda: packed.copy_(of)}
        unpack = {"dtc": lambda: layout.unpack(packed, other), "eager": lambda: to.copy_(packed)}
        inductor, reverse = compiled(copied), compiled(copied)
        pack["Inductor"], unpack["Inductor"] = lambda: inductor(packed, of), lambda: reverse(to, packed)
        for name, peer in peers.items():
            try:
                pack[name], unpack[name] = peer.copy(packed, of), peer.copy(to, packed)
            except Exception as error:
                print(f"{name}: {error!r}"[:200], file=sys.stderr)
        return pack, unpack
    index = case.index.cuda()
    tables = {"rows": index} if isinstance(case, Rows) and case.table else {}
    pack = {"dtc": lambda: layout.pack(memory, packed, **tables), "eager": lambda: selected(packed, memory, index)}
    unpack = {"dtc": lambda: layout.unpack(packed, other, **tables), "eager": lambda: stored(other, packed, index)}
    inductor, reverse = compiled(selected), compiled(stored)
    pack["Inductor"], unpack["Inductor"] = lambda: inductor(packed, memory, index), lambda: reverse(other, packed, index)
    return pack, unpack


def least_traffic(case, memory):
    """The least bytes that the memory moves to pack, and to unpack: the roofline of `dtc explain` (docs/understand/limits.md)."""
    places = torch.arange(memory.numel(), device="cuda", dtype=torch.int64).view(memory.shape)
    flat = (case.view(places) if isinstance(case, Nest) else places[case.index.cuda()]).reshape(-1)
    # Bytes of each sector that are wanted, for whole granules. An element is inside of one sector.
    wanted = torch.zeros(memory.numel() * case.item // GRANULE_BYTES + 1, GRANULE_BYTES // SECTOR_BYTES, dtype=torch.int64, device="cuda")
    for start in range(0, flat.numel(), 1 << 26):
        sectors = flat[start : start + (1 << 26)] * case.item // SECTOR_BYTES
        wanted.view(-1).add_(torch.bincount(sectors, minlength=wanted.numel()), alpha=case.item)
    packed = flat.numel() * case.item
    granules = int((wanted.sum(1) > 0).sum()) * GRANULE_BYTES
    stored = int((wanted > 0).sum()) * SECTOR_BYTES
    read_before = int(((wanted > 0) & (wanted < SECTOR_BYTES)).sum()) * SECTOR_BYTES
    return {"pack": granules + packed, "unpack": packed + read_before + stored}


def measure(case, clock, peers, out):
    memory = random_tensor(case.elements(), case.item)
    expected = case.view(memory).contiguous() if isinstance(case, Nest) else memory[case.index.cuda()]
    packed, other = torch.empty_like(expected), torch.empty_like(memory)
    pack, unpack = calls_of(case, memory, packed, other, peers)
    bytes_packed = expected.numel() * case.item
    traffic = least_traffic(case, memory)
    figures = []
    for direction, calls in [("pack", pack), ("unpack", unpack)]:
        wanted = expected
        if direction == "unpack":
            packed.copy_(expected)
            poison(other)
            calls["eager"]()
            wanted = other.clone()
        result = packed if direction == "pack" else other
        for name in list(calls):
            poison(result)
            try:
                calls[name]()
                torch.cuda.synchronize()
                good, why = same(result, wanted), "wrong bytes"
            except Exception as error:
                good, why = False, repr(error)[:200]
            if not good:
                print(f"{name}, {direction} of {case.text()}: {why}", file=sys.stderr)
                if name == "dtc":
                    sys.exit(3)
                del calls[name]
        copy = packed.clone()
        calls["copy"] = lambda: copy.copy_(packed)
        # Until the background has made the canonical form of a long list and compiled the kernel, generic kernels serve.
        for _ in range(WARM_UPS if isinstance(case, Nest) else LISTED_WARM_UPS):
            torch.cuda.synchronize()
            time.sleep(0.2)
            calls["dtc"]()
        medians = clock.medians(calls)
        roofline = medians["copy"] * traffic[direction] / (2 * bytes_packed)
        best = min((us, name) for name, us in medians.items() if name not in ("dtc", "copy"))
        figure = {
            "class": case.name, "layout": case.text(), "direction": direction, "packed_bytes": bytes_packed,
            "us": {name: round(us, 2) for name, us in medians.items()}, "roofline_us": round(roofline, 2),
            "best_peer": best[1], "over_best": round(best[0] / medians["dtc"], 3), "of_roofline": round(roofline / medians["dtc"], 3),
        }
        out.write(json.dumps(figure) + "\n")
        out.flush()
        figures.append(figure)
    return figures


def mean(figures, key):
    return math.exp(statistics.fmean(math.log(figure[key]) for figure in figures))


def print_tables(figures):
    print("| class | direction | layouts | over the best peer | least | below 0.95 | of the roofline |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: |")
    for group in sorted({(figure["class"], figure["direction"]) for figure in figures}):
        some = [figure for figure in figures if (figure["class"], figure["direction"]) == group]
        over = [figure["over_best"] for figure in some]
        below = sum(1 for ratio in over if ratio < 0.95)
        print(f"| {group[0]} | {group[1]} | {len(some)} | {mean(some, 'over_best'):.3f} | {min(over):.3f} | {below} | {mean(some, 'of_roofline'):.3f} |")
    print()
    print("| below 0.95 | direction | dtc, us | best peer, us | ratio | of the roofline |")
    print("| --- | --- | ---: | ---: | ---: | ---: |")
    for figure in sorted((figure for figure in figures if figure["over_best"] < 0.95), key=lambda figure: figure["over_best"]):
        us, best = figure["us"], figure["best_peer"]
        print(f"| {figure['layout']} | {figure['direction']} | {us['dtc']:.1f} | {us[best]:.1f} {best} | {figure['over_best']:.3f} | {figure['of_roofline']:.3f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out")
    parser.add_argument("--seed", type=int, default=time.time_ns() & 0xFFFFFFFF)
    parser.add_argument("--layouts", type=int, default=42)
    parser.add_argument("--mebibytes", type=int, default=64)
    parser.add_argument("--seconds", type=int, default=480)
    parser.add_argument("--only", default="", help="only classes whose name contains this; as many layouts are drawn")
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit(4)
    end = time.monotonic() + arguments.seconds
    draws = random.Random(arguments.seed)
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, seed {arguments.seed}, {arguments.mebibytes} MiB")
    torch.cuda.manual_seed(arguments.seed)
    figures = []
    with torch.cuda.stream(torch.cuda.Stream()), open(arguments.out, "w") as out:
        clock, others = Clock(), peers()
        for number in range(arguments.layouts):
            if time.monotonic() > end:
                print(f"the time was up after {number} layouts")
                break
            packed = arguments.mebibytes << 20
            case = CLASSES[number % len(CLASSES)](draws, packed)
            if arguments.only not in case.name:
                continue
            figures += measure(case, clock, others, out)
    print_tables(figures)


if __name__ == "__main__":
    main()
