#!/usr/bin/env python3
"""Defines the cases of the GPU benchmark.

    generate.py               writes cases.json and cases/*.json beside this file
    generate.py --lists DIR   writes the descriptions of the long lists, which are not kept: DIR/*.json
    generate.py --lists DIR --only "runs int 1..32 1k"

Needs Python alone. What the fields mean: README.md.
"""

import argparse
import json
import math
import os
import re

MASK = (1 << 64) - 1
STEP = 0x9E3779B97F4A7C15
MIB = 1 << 20
PACKED = 256 * MIB
HERE = os.path.dirname(os.path.abspath(__file__))


# Lists, drawn from a counter so that every program can draw them in any order.


def mix(z):
    """The output function of SplitMix64."""
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def draw(seed, index):
    return mix((seed + (index + 1) * STEP) & MASK)


def runs(number, most, seed):
    """Displacements and lengths, in units: 1 to `most` units long, 1 to `most` units apart."""
    displacements, lengths, at = [], [], 0
    for index in range(number):
        drawn = draw(seed, index)
        length, gap = 1 + (drawn & 0xFFFFFFFF) % most, 1 + (drawn >> 32) % most
        displacements.append(at)
        lengths.append(length)
        at += length + gap
    return displacements, lengths


def shuffled(number, seed):
    """A permutation: the indices by what is drawn for them."""
    return sorted(range(number), key=lambda index: draw(seed, index))


def checksum(words):
    """Of offset and length in bytes, in turn, of every run."""
    return f"{sum(mix(mix(index) ^ word) for index, word in enumerate(words)) & MASK:016x}"


# Descriptions.


def named(name):
    return {"kind": "named", "name": name}


def vector(count, blocklength, stride, child):
    return {"kind": "vector", "count": count, "blocklength": blocklength, "stride": stride, "child": child}


def hvector(count, stride, child):
    return {"kind": "hvector", "count": count, "blocklength": 1, "stride_bytes": stride, "child": child}


def subarray(sizes, subsizes, starts, child):
    return {
        "kind": "subarray",
        "sizes": sizes,
        "subsizes": subsizes,
        "starts": starts,
        "order": "C",
        "child": child,
    }


def nest(element, loops, offset=0):
    """A loop nest in packed order, outermost first, as (size, stride in bytes), without loops that say nothing."""
    loops = [loop for loop in loops if loop[0] > 1]
    while loops and loops[-1][1] == element:
        element *= loops.pop()[0]
    merged = []
    for size, stride in loops:
        if merged and merged[-1][1] == size * stride:
            merged[-1] = (merged[-1][0] * size, stride)
        else:
            merged.append((size, stride))
    return {
        "kind": "nest",
        "offset_bytes": offset,
        "sizes": [size for size, _ in merged],
        "strides_bytes": [stride for _, stride in merged],
        "element_bytes": element,
    }


def span(shape):
    last = sum((size - 1) * stride for size, stride in zip(shape["sizes"], shape["strides_bytes"]))
    return shape["offset_bytes"] + last + shape["element_bytes"]


CASES = []


def case(name, story, shape, tree, count=1, packed=None, buffer=None):
    file = "".join(letter if letter.isalnum() else "_" for letter in name)
    is_list = shape["kind"] != "nest"
    CASES.append(
        {
            "name": name,
            "file": f"{'lists' if is_list else 'cases'}/{file}.json",
            "count": count,
            "packed_bytes": packed or math.prod(shape["sizes"]) * shape["element_bytes"],
            "buffer_bytes": buffer or span(shape),
            "shape": shape,
            "story": story,
            "tree": tree,
        }
    )


def basic(*numbers):
    """The widest basic element that divides all of these."""
    for name, width in (("MPI_DOUBLE", 8), ("MPI_INT", 4), ("MPI_SHORT", 2), ("MPI_BYTE", 1)):
        if all(number % width == 0 for number in numbers):
            return named(name), width


def strided(name, block, stride, packed=PACKED, story=None):
    element, width = basic(block, stride)
    number = packed // block
    tree = vector(number, block // width, stride // width, element)
    case(name, story or f"Blocks of {block} bytes, {stride} bytes apart.", nest(block, [(number, stride)]), tree)


def box(name, story, sizes, subsizes, starts):
    strides = [8 * math.prod(sizes[axis + 1 :]) for axis in range(len(sizes))]
    offset = sum(start * stride for start, stride in zip(starts, strides))
    shape = nest(8, list(zip(subsizes, strides)), offset)
    case(name, story, shape, subarray(sizes, subsizes, starts, named("MPI_DOUBLE")))


def define():
    case(
        "contiguous",
        "256 MiB of doubles without a gap.",
        nest(PACKED, []),
        {"kind": "contiguous", "count": PACKED // 8, "child": named("MPI_DOUBLE")},
    )
    for block, stride, packed in (
        (4, 8, PACKED),
        (8, 16, PACKED),
        (8, 64, PACKED),
        (8, 512, PACKED),
        (8, 4096, 32 * MIB),
        (12, 64, PACKED),
        (16, 512, PACKED),
        (16, 4096, 64 * MIB),
        (24, 64, PACKED),
        (32, 512, PACKED),
        (64, 512, PACKED),
        (128, 512, PACKED),
        (1024, 2048, PACKED),
        (4000, 4096, PACKED),
    ):
        strided(f"strided {block}/{stride}", block, stride, packed)
    strided("rows 1001/1003", 1001, 1003, story="Rows whose length and stride are odd: no word is aligned twice.")
    strided("rows 16384/20480", 16384, 20480, story="Long rows.")

    case(
        "chars 64/256",
        "Blocks of 64 characters: bytes by their type, words by their place.",
        nest(64, [(PACKED // 64, 256)]),
        vector(PACKED // 64, 64, 256, named("MPI_CHAR")),
    )
    case(
        "vector of int pairs 4",
        "A vector of contiguous pairs, four to a block.",
        nest(32, [(PACKED // 32, 64)]),
        vector(PACKED // 32, 4, 8, {"kind": "contiguous", "count": 2, "child": named("MPI_INT")}),
    )
    for size, label in ((16 << 10, "16 KiB"), (MIB, "1 MiB")):
        case(
            f"vector double complex {label}",
            "Every second complex number of a small array.",
            nest(16, [(size // 16, 32)]),
            vector(size // 16, 1, 2, named("MPI_C_DOUBLE_COMPLEX")),
        )

    for label, mpi, width, n in (
        ("f64", "MPI_DOUBLE", 8, 8192),
        ("f32", "MPI_FLOAT", 4, 8192),
        ("c128", "MPI_C_DOUBLE_COMPLEX", 16, 4096),
    ):
        case(
            f"transpose {label} {n}",
            f"A {n} x {n} matrix sent by columns.",
            nest(width, [(n, width), (n, n * width)]),
            hvector(n, width, vector(n, 1, n, named(mpi))),
        )
    case(
        "permute 201 f32 512",
        "A 512^3 array of floats with its last axis sent first.",
        nest(4, [(512, 4), (512, 4 << 18), (512, 4 << 9)]),
        hvector(512, 4, hvector(512, 4 << 18, vector(512, 1, 512, named("MPI_FLOAT")))),
    )

    record = {
        "kind": "struct",
        "blocklengths": [1, 1, 1, 1],
        "displacements_bytes": [0, 8, 12, 16],
        "children": [named("MPI_DOUBLE"), named("MPI_INT"), named("MPI_INT"), named("MPI_CHAR")],
    }
    for number, label in ((1 << 10, "1k"), (16 << 20, "16M")):
        story = "An array of records of a double, two ints and a char, each padded from 17 to 24 bytes."
        case(f"records 17/24 {label}", story, nest(17, [(number, 24)]), record, count=number)

    cube = [512, 512, 512]
    box("face 512^3 8/4096", "A face of a box: single doubles.", cube, [512, 512, 1], [0, 0, 511])
    box("face width2 16/4096", "A face two cells wide: pairs of doubles.", cube, [512, 512, 2], [0, 0, 510])
    box("face rows", "A face of whole rows.", cube, [512, 1, 512], [0, 511, 0])
    box("face rows width2", "A face of whole rows, two cells wide.", cube, [512, 2, 512], [0, 510, 0])
    lattice = [64, 64, 64, 128]
    box("4-D interior", "A lattice without its ghost sites.", lattice, [62, 62, 62, 126], [1, 1, 1, 1])
    halo = "A halo of a lattice, two sites wide, of its {} dimension."
    box("4-D halo last width 2", halo.format("last"), lattice, [62, 62, 62, 2], [1, 1, 1, 1])
    box("4-D halo second width 2", halo.format("second"), lattice, [62, 2, 62, 126], [1, 1, 1, 1])
    box("4-D halo first width 2", halo.format("first"), lattice, [2, 62, 62, 126], [1, 1, 1, 1])

    sizes = ((1 << 10, "1k"), (16 << 10, "16k"), (256 << 10, "256k"), (1 << 20, "1M"), (8 << 20, "8M"))
    for seed, (label, mpi, width) in enumerate((("int", "MPI_INT", 4), ("double", "MPI_DOUBLE", 8)), start=1):
        for number, size in sizes:
            displacements, lengths = runs(number, 32, seed)
            words = [width * word for pair in zip(displacements, lengths) for word in pair]
            shape = {
                "kind": "runs",
                "runs": number,
                "unit_bytes": width,
                "most_units": 32,
                "seed": seed,
                "checksum": checksum(words),
            }
            case(
                f"runs {label} 1..32 {size}",
                "Runs of irregular length and distance, in ascending order.",
                shape,
                named(mpi),
                packed=width * sum(lengths),
                buffer=words[-2] + words[-1],
            )
    number, seed = 4 << 20, 3
    order = shuffled(number, seed)
    shape = {
        "kind": "blocks",
        "blocks": number,
        "block_bytes": 64,
        "seed": seed,
        "checksum": checksum([word for index in order for word in (64 * index, 64)]),
    }
    case(
        "indexed_block 16 int 4M shuffled",
        "Blocks of 16 ints in random order.",
        shape,
        named("MPI_INT"),
        packed=64 * number,
        buffer=64 * number,
    )


def description(case):
    return {
        "story": case["story"],
        "source": f"the case {case['name']!r} of bench/gpu",
        "count": case["count"],
        "buffer_bytes": case["buffer_bytes"],
        "type": case["tree"],
    }


def list_tree(case):
    shape, child = case["shape"], case["tree"]
    if shape["kind"] == "blocks":
        width = 16
        displacements = [width * index for index in shuffled(shape["blocks"], shape["seed"])]
        return {"kind": "indexed_block", "blocklength": width, "displacements": displacements, "child": child}
    displacements, lengths = runs(shape["runs"], shape["most_units"], shape["seed"])
    return {"kind": "indexed", "blocklengths": lengths, "displacements": displacements, "child": child}


def write(path, value, compact=False):
    with open(path, "w", encoding="utf-8") as file:
        text = json.dumps(value, separators=(",", ":")) if compact else json.dumps(value, indent=2)
        # Lists of numbers on one line.
        short = text if compact else re.sub(r"\[[-\d,\s]+\]", lambda found: json.dumps(json.loads(found[0])), text)
        file.write(short + "\n")


def main():
    parser = argparse.ArgumentParser(description="Writes the cases of the GPU benchmark.")
    parser.add_argument("--lists", metavar="DIR", help="write the descriptions of the long lists there instead")
    parser.add_argument("--only", metavar="NAME", help="this list only")
    arguments = parser.parse_args()
    if arguments.lists:
        # The index knows the lists, so that they need not be drawn to be named.
        with open(os.path.join(HERE, "cases.json"), encoding="utf-8") as file:
            cases = json.load(file)["cases"]
        os.makedirs(arguments.lists, exist_ok=True)
        for case in cases:
            if case["shape"]["kind"] == "nest" or arguments.only not in (None, case["name"]):
                continue
            case["tree"] = named("MPI_DOUBLE" if case["shape"].get("unit_bytes") == 8 else "MPI_INT")
            case["tree"] = list_tree(case)
            write(os.path.join(arguments.lists, os.path.basename(case["file"])), description(case), compact=True)
        return
    define()
    os.makedirs(os.path.join(HERE, "cases"), exist_ok=True)
    for case in CASES:
        if case["shape"]["kind"] == "nest":
            write(os.path.join(HERE, case["file"]), description(case))
    index = [{key: value for key, value in case.items() if key != "tree"} for case in CASES]
    with open(os.path.join(HERE, "cases.json"), "w", encoding="utf-8") as file:
        lines = ",\n".join("  " + json.dumps(case) for case in index)
        file.write('{"cases": [\n' + lines + "\n]}\n")


if __name__ == "__main__":
    main()
