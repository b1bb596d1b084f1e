"""Columns of structured records to contiguous arrays, by libdtc and by NumPy.

    python columns.py [--plot FILE.svg]

Prints a table of ratios, above 1 where libdtc is faster. All results are compared byte by byte.
"""

import argparse
import time

import numpy as np

import libdtc

# Records that libdtc packs before it turns them into columns: their packed columns stay in the second-level cache.
CHUNK = 4096


def by_numpy(records, names, columns):
    """A copy for each column."""
    for column, name in zip(columns, names):
        np.copyto(column, records[name])


class Columns:
    """The columns `names` of records, written to `columns`, an array with a row for each."""

    def __init__(self, records, names, columns):
        self.records, self.columns = records, columns
        self.packed = np.empty((CHUNK, len(names)), columns.dtype)
        self.fields = libdtc.layout(records if len(names) == 1 else records[:CHUNK])[names]
        self.turned = libdtc.layout(columns[:, :CHUNK]).T

    def run(self):
        """Reads each record once: its fields are packed together, and turned while they are in the cache. One field is packed as it is."""
        if len(self.columns) == 1:
            self.fields.pack(self.records, self.columns)
            return
        for start in range(0, len(self.records), CHUNK):
            chunk = slice(start, start + CHUNK)
            self.fields.pack(self.records[chunk], self.packed)
            self.turned.unpack(self.packed, self.columns[:, chunk])


def best(call, rounds):
    """Seconds of a call: the least of some rounds."""
    call()
    found = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        call()
        found = min(found, time.perf_counter() - start)
    return found


def measured(width, wanted, count, rounds):
    """NumPy's time over libdtc's: for columns, and for the fields of each record packed together."""
    records = np.empty(count, [(f"f{i}", "f8") for i in range(width // 8)])
    records.view("u1")[:] = np.frombuffer(np.random.default_rng(1).bytes(records.nbytes), "u1")
    names = [f"f{i * (width // 8) // wanted}" for i in range(wanted)]
    ours, theirs = np.full((wanted, count), np.nan), np.full((wanted, count), np.nan)
    columns = Columns(records, names, ours)
    columns.run()
    by_numpy(records, names, theirs)
    assert ours.tobytes() == theirs.tobytes()
    fields = libdtc.layout(records)[names]
    packed = np.empty(count, fields.dtype)
    fields.pack(records, packed)
    same = np.empty(count, fields.dtype)

    def assigned():
        for name in names:
            same[name] = records[name]

    assigned()
    assert packed.tobytes() == same.tobytes()
    numpy = best(lambda: by_numpy(records, names, theirs), rounds)
    together = best(assigned, rounds)
    return numpy / best(columns.run, rounds), together / best(lambda: fields.pack(records, packed), rounds)


def plot(rows, path):
    """Writes bars of the ratios as a picture."""
    height = 60 + 34 * len(rows)
    longest = max(max(row[3:]) for row in rows)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="760" height="{height}" font-family="sans-serif" font-size="12">']
    parts.append(f'<rect width="760" height="{height}" fill="white"/>')
    parts.append('<text x="10" y="20">NumPy\'s time over libdtc\'s: columns (blue), fields of each record together (orange)</text>')
    scale = 420 / longest
    for at, (width, wanted, count, columns, together) in enumerate(rows):
        y = 44 + 34 * at
        parts.append(f'<text x="10" y="{y + 14}">{wanted} of {width // 8} fields, {count * width >> 20 or 1} MiB of records</text>')
        for ratio, color, below in ((columns, "#2563eb", 0), (together, "#ea580c", 13)):
            parts.append(f'<rect x="260" y="{y + below}" width="{ratio * scale:.1f}" height="11" fill="{color}"/>')
            parts.append(f'<text x="{264 + ratio * scale:.1f}" y="{y + below + 10}" font-size="10">{ratio:.2f}</text>')
    parts.append(f'<line x1="{260 + scale:.1f}" x2="{260 + scale:.1f}" y1="34" y2="{height - 14}" stroke="black" stroke-dasharray="3 3"/></svg>')
    with open(path, "w") as file:
        file.write("\n".join(parts) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plot")
    options = parser.parse_args()
    rows = []
    print("| record | fields | records | columns | fields together |\n| --- | --- | --- | --- | --- |")
    for width, wanted in ((64, 1), (64, 4), (64, 8), (128, 4), (128, 8), (256, 4)):
        for count in (1 << 14, 1 << 17, 1 << 20):
            ratios = measured(width, wanted, count, 9 if count < 1 << 20 else 5)
            rows.append((width, wanted, count, *ratios))
            print(f"| {width} B | {wanted} | {count} | {ratios[0]:.2f} | {ratios[1]:.2f} |", flush=True)
    if options.plot:
        plot(rows, options.plot)


if __name__ == "__main__":
    main()
