"""Packs and unpacks of NumPy arrays by libdtc beside NumPy's own copies: a table of ratios, above 1 where libdtc is faster.

    python cpu.py [--rounds N] [--only WORD]

Beside `numpy.copyto` of a view that is made before: the fastest that NumPy has. All results are compared with NumPy's.
"""

import argparse
import platform
import sys
import time

import numpy as np

import libdtc

# Packed bytes of each layout, about.
SIZES = [64, 512, 4 << 10, 32 << 10, 256 << 10, 2 << 20, 16 << 20, 64 << 20]


def cube(count, of):
    return max(1, round(count ** (1 / of)))


def record(fields):
    return np.dtype([(f"f{i}", "f8") for i in range(fields)])


def cases(size):
    """Name, array, and what is packed of it, as an index or a function of an array or layout."""
    doubles = max(size // 8, 1)
    side = cube(doubles, 2)
    yield "contiguous", np.empty(doubles), lambda a: a
    yield "column of a matrix", np.empty((doubles, 16)), lambda a: a[:, 3]
    yield "field of 64-byte records", np.empty(doubles, record(8)), lambda a: a["f3"]
    yield "field of 64-byte records, 4 bytes", np.empty(size // 4, [("a", "f4"), ("b", "V60")]), lambda a: a["a"]
    yield "4 of 8 fields", np.empty(max(size // 32, 1), record(8)), lambda a: a[["f0", "f2", "f3", "f7"]]
    yield "ghost face, first axis", np.empty((3, side, side)), lambda a: a[1]
    yield "ghost face, middle axis", np.empty((side, 3, side)), lambda a: a[:, 1]
    yield "ghost face, last axis", np.empty((side, side, 4)), lambda a: a[:, :, 1]
    inner = cube(doubles, 3)
    yield "interior of a cube", np.empty((inner + 2,) * 3), lambda a: a[1:-1, 1:-1, 1:-1]
    yield "every other element", np.empty(2 * doubles), lambda a: a[::2]
    yield "reversed", np.empty(doubles), lambda a: a[::-1]
    yield "transpose, float64", np.empty((side, side)), lambda a: a.T
    yield "transpose, float32", np.empty((cube(size // 4, 2),) * 2, "f4"), lambda a: a.T
    yield "transpose, uint8", np.empty((cube(size, 2),) * 2, "u1"), lambda a: a.T
    heads = max(doubles // (8 * 64), 1)
    yield "(s, h, d) to (h, s, d)", np.empty((heads, 8, 64)), lambda a: permuted(a, (1, 0, 2))
    cubic = cube(doubles, 3)
    yield "(a, b, c) to (c, b, a)", np.empty((cubic,) * 3), lambda a: permuted(a, (2, 1, 0))
    yield "(a, b, c) to (b, c, a)", np.empty((cubic,) * 3), lambda a: permuted(a, (1, 2, 0))


def permuted(a, axes):
    return a.permute(*axes) if isinstance(a, libdtc.Layout) else a.transpose(axes)


def best(calls, rounds):
    """Seconds of one of each call: the least of `rounds` rounds, in which they take turns."""
    repeats = []
    for call in calls:
        call()
        start = time.perf_counter()
        call()
        repeats.append(max(1, int(2e-4 / max(time.perf_counter() - start, 1e-9))))
    found = [float("inf")] * len(calls)
    for _ in range(rounds):
        for at, (call, repeat) in enumerate(zip(calls, repeats)):
            start = time.perf_counter()
            for _ in range(repeat):
                call()
            found[at] = min(found[at], (time.perf_counter() - start) / repeat)
    return found


def fill(array, random):
    memory = array.reshape(-1).view("u1")
    memory[:] = np.frombuffer(random.bytes(min(memory.size, 1 << 20)) * (memory.size // (1 << 20) + 1), "u1")[: memory.size]


def compared(array, part, random, rounds):
    """NumPy's time over libdtc's, of a pack and an unpack, and libdtc's bytes in a second; checks both."""
    fill(array, random)
    layout, view = part(libdtc.layout(array)), part(array)
    out = np.zeros(view.shape, layout.dtype)
    layout.pack(array, out)
    # Several fields of a record are packed without the bytes between them.
    exact = np.ascontiguousarray(view) if view.dtype.names is None else view.astype(layout.dtype)
    assert out.tobytes() == exact.tobytes(), "a pack"
    other = np.zeros_like(array)
    layout.unpack(out, other)
    assert np.array_equal(part(other).astype(layout.dtype).view("u1"), out.view("u1")) if out.ndim == 1 else part(other).tobytes() == out.tobytes()
    packs = best([lambda: np.copyto(out, view), lambda: layout.pack(array, out)], rounds)
    target = part(other)
    unpacks = best([lambda: np.copyto(target, out), lambda: layout.unpack(out, other)], rounds)
    return packs, unpacks, out.nbytes


def overheads(rounds):
    """Nanoseconds of calls that move 64 bytes, and of making layouts."""
    array, out = np.zeros((8, 8)), np.zeros(8)
    layout, view = libdtc.layout(array)[:, 1], array[:, 1]
    calls = {
        "layout.pack(array, out)": lambda: layout.pack(array, out),
        "numpy.copyto(out, view)": lambda: np.copyto(out, view),
        "numpy.copyto(out, array[:, 1])": lambda: np.copyto(out, array[:, 1]),
        "layout.unpack(out, array)": lambda: layout.unpack(out, array),
        "layout.pack(array)": lambda: layout.pack(array),
        "array[:, 1].copy()": lambda: array[:, 1].copy(),
        "libdtc.layout(array)[:, 1]": lambda: libdtc.layout(array)[:, 1],
        "libdtc.layout(array)[:, 1].pack(array, out)": lambda: libdtc.layout(array)[:, 1].pack(array, out),
    }
    return dict(zip(calls, best(list(calls.values()), 20 * rounds)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    print(f"CPython {platform.python_version()}, NumPy {np.__version__}", file=sys.stderr)
    print("| call | ns |\n| --- | --- |")
    for name, seconds in overheads(options.rounds).items():
        print(f"| `{name}` | {seconds * 1e9:.0f} |")
    print("\n| layout | pack or unpack |", " | ".join(named(size) for size in SIZES), "|\n|", " --- |" * (len(SIZES) + 2))
    random = np.random.default_rng(1)
    rows = {}
    for size in SIZES:
        for name, array, part in cases(size):
            if options.only in name:
                packs, unpacks, _ = compared(array, part, random, options.rounds if size < 1 << 22 else 5)
                rows.setdefault(name, []).append((packs[0] / packs[1], unpacks[0] / unpacks[1]))
    for name, found in rows.items():
        print(f"| {name} | pack |", " | ".join(f"{pack:.2f}" for pack, _ in found), "|")
        print("| | unpack |", " | ".join(f"{unpack:.2f}" for _, unpack in found), "|")
    both = [ratio for found in rows.values() for pair in found for ratio in pair]
    print(f"\nGeometric mean {np.exp(np.mean(np.log(both))):.2f}; {sum(ratio < 1 for ratio in both)} of {len(both)} below 1.")


def named(size):
    return f"{size >> 20} MiB" if size >= 1 << 20 else f"{size >> 10} KiB" if size >= 1 << 10 else f"{size} B"


if __name__ == "__main__":
    main()
