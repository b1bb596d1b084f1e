#!/usr/bin/env python3
"""Draws type descriptions of the classes whose kernels go by runs, fields or the order of memory.

    drawn.py SEED DIR        writes DIR/*.json, 60 MiB packed each

Needs Python alone. dtc-bench --backend cuda DIR/*.json measures them, and checks every byte.
"""

import json
import os
import random
import sys

PACKED = 60 << 20


def named(name):
    return {"kind": "named", "name": name}


BYTE, CHAR, SHORT, INT, FLOAT, DOUBLE = map(named, ("MPI_BYTE", "MPI_CHAR", "MPI_SHORT", "MPI_INT", "MPI_FLOAT", "MPI_DOUBLE"))


def resized(child, extent):
    return {"kind": "resized", "lb": 0, "extent": extent, "child": child}


def structure(lengths, displacements, children):
    return {"kind": "struct", "blocklengths": lengths, "displacements_bytes": displacements, "children": children}


def listed(runs, child, size):
    lengths = [length // size for _, length in runs]
    return {"kind": "hindexed", "blocklengths": lengths, "displacements_bytes": [at for at, _ in runs], "child": child}


def runs(shortest, longest, gap, unit):
    """Runs of random length and distance, ascending, in multiples of `unit` bytes."""
    found, at, total = [], 0, 0
    while total < PACKED:
        at += (1 + random.randrange(gap // unit)) * unit
        length = random.randint(shortest // unit, longest // unit) * unit
        found.append((at, length))
        at += length
        total += length
    return found


def short_runs(most, number):
    found, at = [], 0
    for _ in range(number):
        at += random.randint(1, most)
        length = random.randint(1, most)
        found.append((at, length))
        at += length
    size = sum(length for _, length in found)
    return resized(listed(found, BYTE, 1), at + most), PACKED // size


def rows(length, stride, child, size):
    return {"kind": "hvector", "count": PACKED // length, "blocklength": length // size, "stride_bytes": stride, "child": child}


def fields(arrays, child, size, equal=False):
    """An element of each array after the other, arrays in any order."""
    count, places = PACKED // (arrays * size), [0]
    while len(places) < arrays:
        places.append(places[-1] + count * size + 4096 * (33 if equal else random.randrange(1, 60)))
    if not equal:
        random.shuffle(places)
    record = {"kind": "hindexed_block", "blocklength": 1, "displacements_bytes": places, "child": child}
    return resized(record, size), count


def mixed_fields():
    """Fields of any width, one in 16 bytes."""
    count = PACKED // 19
    array = count * 16 + 8192
    places = [2 * array, 0, array + 4096, 4 * array + 64, 3 * array]
    return resized(structure([1] * 5, places, [DOUBLE, FLOAT, INT, SHORT, CHAR]), 16), count


def blocks(number, size, share=1.0):
    """Blocks of `size` bytes in random order, of which a share is sent."""
    order = list(range(number))
    random.shuffle(order)
    order = order[: int(number * share)]
    places = [block * size for block in order]
    list_ = {"kind": "hindexed_block", "blocklength": size // 4, "displacements_bytes": places, "child": FLOAT}
    return resized(list_, number * size), max(1, PACKED // (len(order) * size))


def main():
    seed, folder = int(sys.argv[1]), sys.argv[2]
    random.seed(seed)
    side = 6000
    drawn = {"triangle": listed([((row * side + row) * 4, (side - row) * 4) for row in range(side)], FLOAT, 4)}
    for shortest, longest, gap in [(1000, 60000, 20000), (200, 4000, 2000), (100, 1000, 500), (32, 256, 200)]:
        for child, size in [(BYTE, 1), (FLOAT, 4), (DOUBLE, 8)]:
            drawn[f"runs_{shortest}_{longest}_by_{size}"] = listed(runs(shortest, longest, gap, size), child, size)
    drawn["runs_1_9"] = short_runs(9, 65536)
    drawn["runs_1_30"] = short_runs(30, 65536)
    for length, stride, child, size in [(1001, 1003, BYTE, 1), (3001, 3203, BYTE, 1), (4004, 4012, FLOAT, 4), (8008, 8024, DOUBLE, 8)]:
        drawn[f"rows_{length}_{stride}"] = rows(length, stride, child, size)
    for arrays, child, size in [(2, FLOAT, 4), (3, DOUBLE, 8), (5, FLOAT, 4), (6, DOUBLE, 8), (8, DOUBLE, 8), (16, FLOAT, 4), (64, FLOAT, 4),
                                (4, SHORT, 2), (7, CHAR, 1)]:
        drawn[f"fields_{arrays}x{size}"] = fields(arrays, child, size)
    drawn["fields_5x4_equal"] = fields(5, FLOAT, 4, equal=True)
    drawn["fields_mixed"] = mixed_fields()
    record = structure([3, 1, 1, 2, 7, 1], [0, 16, 24, 40, 64, 80], [FLOAT, DOUBLE, INT, DOUBLE, SHORT, CHAR])
    drawn["records_55_120"] = resized(record, 120), PACKED // 55
    record = structure([1, 2, 1, 3], [0, 9, 24, 29], [DOUBLE, CHAR, INT, CHAR])
    drawn["records_17_40"] = resized(record, 40), PACKED // 17
    for number, size, share in [(1 << 20, 16, 1), (1 << 20, 8, 1), (1 << 20, 4, 1), (1 << 19, 32, 1), (1 << 14, 16, 1), (1 << 14, 16, 0.6),
                                (1 << 14, 16, 0.3), (2048, 4, 0.93)]:
        drawn[f"blocks_{size}_of_{number}_{share}"] = blocks(number, size, share)
    for name, found in drawn.items():
        tree, count = found if isinstance(found, tuple) else (found, 1)
        with open(os.path.join(folder, name + ".json"), "w", encoding="utf-8") as file:
            json.dump({"story": f"Drawn with seed {seed}.", "count": count, "type": tree}, file)


if __name__ == "__main__":
    main()
