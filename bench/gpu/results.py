#!/usr/bin/env python3
"""Writes the tables of a results file from the lines of one run.

    results.py dtc.jsonl peers.jsonl torch.jsonl > tables.md

Speeds are packed bytes per second, ratios are ratios of speeds, and means are geometric.
"""

import json
import math
import sys
from pathlib import Path

# The best of a sweep of hand-specialised kernels on another H200, in GB/s: pack, unpack. The copy beside it ran at 2,070.
HAND = {
    "contiguous": (2082, 2081),
    "strided 4/8": (1426, 871),
    "strided 8/16": (1429, 872),
    "strided 8/64": (493, 394),
    "strided 8/512": (359, 139),
    "strided 8/4096": (274, 123),
    "strided 12/64": (698, 542),
    "strided 16/512": (790, 275),
    "strided 16/4096": (527, 242),
    "strided 24/64": (1190, 930),
    "strided 32/512": (1283, 713),
    "strided 64/512": (1943, 1250),
    "strided 128/512": (2034, 1847),
    "strided 1024/2048": (2057, 2020),
    "strided 4000/4096": (2077, 2073),
}
HAND_COPY = 2070.0
# The copy of the sweep had 256 MiB; these have less, and are compared without it.
SMALLER = {"strided 8/4096", "strided 16/4096"}

# The same sweep on the machine of the run: pack, unpack.
HAND_HERE = {
    "strided 4/8": (1416, 858),
    "strided 8/16": (1424, 858),
    "strided 8/64": (493, 396),
    "strided 8/512": (388, 142),
    "strided 8/4096": (283, 124),
    "strided 12/64": (694, 528),
    "strided 16/512": (737, 281),
    "strided 16/4096": (537, 244),
    "strided 24/64": (1183, 881),
    "strided 32/512": (1259, 708),
    "strided 64/512": (1910, 1243),
    "strided 128/512": (2037, 1847),
    "strided 1024/2048": (2041, 2008),
    "strided 4000/4096": (2058, 2060),
}

# Bytes that a copy reads and writes, in GB/s.
MEMORY = 2 * HAND_COPY
DIRECTIONS = ("pack", "unpack")
OURS = {"dtc", "dtc generic", "memcpy"}


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__.strip())
    ours, *others = [read(name) for name in sys.argv[1:]]
    others = [line for lines in others for line in lines]
    names = [case["name"] for case in json.loads((Path(__file__).parent / "cases.json").read_text())["cases"]]
    cases = Cases(ours, others)
    for direction in DIRECTIONS:
        speeds(cases, names, direction)
    means(cases, names)
    hand(cases)
    limits(cases)
    fragments(cases, names)
    host(ours, others)


def read(name):
    return [json.loads(line) for line in Path(name).read_text().splitlines()]


class Cases:
    """Lines by peer, case and direction, and the fastest other peer of a case."""

    def __init__(self, ours, others):
        # Cases of which fragments were taken were measured once more beside them.
        self.lines, self.beside = {}, {}
        for line in ours:
            key = line["peer"], line["case"], line["direction"]
            if "clock" not in line:
                self.lines.setdefault(key, line)
                self.beside[key] = line
        self.peers = {}
        for line in others:
            key = line["case"], line["direction"]
            if "clock" in line or line["peer"] in OURS or line["case"] == "launch" or line["cold_us"] is None:
                continue
            if key not in self.peers or line["cold_us"] < self.peers[key]["cold_us"]:
                self.peers[key] = line

    def speed(self, peer, case, direction, clock="cold_us"):
        line = self.lines[peer, case, direction]
        return line["packed_bytes"] / line[clock] / 1e3

    def ratio(self, one, other, case, direction, clock="cold_us"):
        return self.speed(one, case, direction, clock) / self.speed(other, case, direction, clock)


def speeds(cases, names, direction):
    print(f"\n## {direction.capitalize()}\n")
    print("| case | packed | dtc GB/s | / memcpy | warm | / generic | best peer | dtc / peer | kernel |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | --- | ---: | --- |")
    for name in names:
        line = cases.lines["dtc", name, direction]
        peer = cases.peers.get((name, direction))
        cells = [
            name,
            size(line["packed_bytes"]),
            figure(cases.speed("dtc", name, direction)),
            f"{cases.ratio('dtc', 'memcpy', name, direction):.2f}",
            f"{cases.ratio('dtc', 'memcpy', name, direction, 'warm_us'):.2f}",
            f"{cases.ratio('dtc', 'dtc generic', name, direction):.2f}",
            peer["peer"] if peer else "-",
            against(line, peer) if peer else "-",
            line["variant"],
        ]
        print("| " + " | ".join(cells) + " |")


def against(line, peer):
    ratio = peer["cold_us"] / line["cold_us"]
    behind = ratio < 0.97 and line["cold_us"] > peer["cold_us"] + 0.5
    text = f"{ratio:.2f}" if ratio < 100 else f"{ratio:.0f}"
    return f"**{text}**" if behind else text


def means(cases, names):
    print("\n## Geometric means\n")
    print("| | pack | unpack |")
    print("| --- | ---: | ---: |")
    rows = [
        ("dtc / memcpy, cold", lambda name, way: cases.ratio("dtc", "memcpy", name, way)),
        ("dtc / memcpy, warm", lambda name, way: cases.ratio("dtc", "memcpy", name, way, "warm_us")),
        ("generic / memcpy, cold", lambda name, way: cases.ratio("dtc generic", "memcpy", name, way)),
        ("dtc / generic, cold", lambda name, way: cases.ratio("dtc", "dtc generic", name, way)),
    ]
    for text, ratio in rows:
        print(f"| {text} | " + " | ".join(f"{mean(ratio(name, way) for name in names):.3f}" for way in DIRECTIONS) + " |")
    both = []
    for way in DIRECTIONS:
        known = [name for name in names if (name, way) in cases.peers]
        ratios = [cases.peers[name, way]["cold_us"] / cases.lines["dtc", name, way]["cold_us"] for name in known]
        both.append(f"{mean(ratios):.3f} of {len(known)}")
    print(f"| dtc / best peer, cold | {' | '.join(both)} |")


def share(cases, name, index):
    direction, best = DIRECTIONS[index], HAND[name][index]
    if name in SMALLER:
        return cases.speed("dtc", name, direction) / best
    return cases.ratio("dtc", "memcpy", name, direction) / (best / HAND_COPY)


def hand(cases):
    print("\n## Against hand-specialised kernels\n")
    print("| case | | sweep GB/s | / its memcpy | dtc / memcpy | share | sweep here GB/s | dtc GB/s | share |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    shares = {direction: [] for direction in DIRECTIONS}
    for name, best in HAND.items():
        for index, direction in enumerate(DIRECTIONS):
            part = share(cases, name, index)
            shares[direction].append(part)
            speed = cases.speed("dtc", name, direction)
            here = HAND_HERE.get(name, (None, None))[index]
            cells = [
                name,
                direction,
                figure(best[index]),
                "-" if name in SMALLER else f"{best[index] / HAND_COPY:.3f}",
                f"{cases.ratio('dtc', 'memcpy', name, direction):.3f}",
                f"**{part:.3f}**" if part < 0.95 else f"{part:.3f}",
                figure(here) if here else "-",
                figure(speed),
                f"{speed / here:.3f}" if here else "-",
            ]
            print("| " + " | ".join(cells) + " |")
    for direction, parts in shares.items():
        print(f"\n{direction}: geometric mean of the shares {mean(parts):.3f}, minimum {min(parts):.3f}")
    print(f"\nboth: {mean([part for parts in shares.values() for part in parts]):.3f}")


def touched(block, stride, line):
    """Bytes of the lines that a block touches; blocks less than a line apart touch all of them."""
    return stride if stride <= line else math.ceil(block / line) * line


def limits(cases):
    print("\n## What limits sparse layouts\n")
    print("| case | pack: bytes moved a block | limit GB/s | dtc | share | unpack: limit, 64 B | limit, 32 B | dtc | share, 64 B | share, 32 B |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for name in HAND:
        if name == "contiguous":
            continue
        block, stride = map(int, name.split()[1].split("/"))
        if block > 128:
            continue
        moved = touched(block, stride, 64) + block
        limit = MEMORY * block / moved
        speed, back = (cases.speed("dtc", name, direction) for direction in DIRECTIONS)
        cells = [name, str(moved), figure(limit), figure(speed), f"{speed / limit:.2f}"]
        written = []
        for line in (64, 32):
            whole = block % line == 0
            written.append(MEMORY * block / (block + touched(block, stride, line) * (1 if whole else 2)))
        cells += [figure(limit) for limit in written] + [figure(back)] + [f"{back / limit:.2f}" for limit in written]
        print("| " + " | ".join(cells) + " |")


def fragments(cases, names):
    print("\n## Fragments\n")
    print("| fragment of 64 MiB | pack GB/s | of whole | of the same from 0 | unpack GB/s | of whole | of the same from 0 |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for case in dict.fromkeys(case for _, case, _ in cases.lines):
        if case in names:
            continue
        whole, cut, place = case.split(", ")
        cells = [case]
        for direction in DIRECTIONS:
            speed = cases.speed("dtc", case, direction)
            beside = cases.beside["dtc", whole, direction]
            part = speed / (beside["packed_bytes"] / beside["cold_us"] / 1e3)
            first = cases.speed("dtc", f"{whole}, 64 MiB from 0, packed at 0", direction)
            cells += [figure(speed), f"**{part:.3f}**" if part < 0.8 else f"{part:.3f}", f"{speed / first:.2f}"]
        print("| " + " | ".join(cells) + " |")


def host(ours, others):
    print("\n## On the clock of the host\n")
    print("| what | case | packed | cold us | warm us |")
    print("| --- | --- | ---: | ---: | ---: |")
    for line in [line for line in others + ours if "clock" in line]:
        cold = "-" if line["cold_us"] is None else f"{line['cold_us']:,.2f}"
        cells = [line["peer"], line["case"], f"{line['packed_bytes']:,}", cold, f"{line['warm_us']:,.2f}"]
        print("| " + " | ".join(cells) + " |")


def mean(ratios):
    logarithms = [math.log(ratio) for ratio in ratios]
    return math.exp(sum(logarithms) / len(logarithms))


def figure(number):
    return f"{number:,.0f}" if number >= 100 else f"{number:.1f}"


def size(number):
    for unit, text in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if number >= unit:
            return f"{number / unit:.1f} {text}"
    return f"{number} B"


if __name__ == "__main__":
    main()
