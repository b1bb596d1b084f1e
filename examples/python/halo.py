"""The halo of a field: its 26 pieces, faces, edges and corners, packed into buffers of their own.

    python halo.py [--plot FILE.svg]

Compares one launch of libdtc with 26 copies by PyTorch and with what torch.compile makes of them, on a GPU. All bytes are compared.
"""

import argparse
import itertools
import sys

import torch

import libdtc
from measuring import Clock, drawn, plot, same, settled, table

PEERS = ["26 copies", "torch.compile"]
# Points around the field that belong to its neighbours.
WIDTH = 2


def pieces(field):
    """What each of the 26 neighbours wants of the field, as slices."""
    sides = [slice(WIDTH, 2 * WIDTH), slice(WIDTH, -WIDTH), slice(-2 * WIDTH, -WIDTH)]
    return [tuple(sides[at] for at in piece) for piece in itertools.product(range(3), repeat=3) if piece != (1, 1, 1)]


def measured(clock, size, dtype):
    field = drawn((size,) * 3, dtype)
    views = [field[piece] for piece in pieces(field)]
    buffers = [torch.empty(view.shape, dtype=dtype, device="cuda") for view in views]

    def copies(buffers, views):
        for buffer, view in zip(buffers, views):
            buffer.copy_(view)

    torch._dynamo.reset()
    compiled = torch.compile(copies, dynamic=False)
    whole = libdtc.layout(field)
    batch = libdtc.Batch(packs=[(whole[piece], field, buffer) for piece, buffer in zip(pieces(field), buffers)])
    calls = {"libdtc": batch.run, "26 copies": lambda: copies(buffers, views), "torch.compile": lambda: compiled(buffers, views)}
    settled(batch.run)
    for peer, call in calls.items():
        for buffer in buffers:
            buffer.view(torch.uint8).fill_(0xA5)
        call()
        if not all(same(buffer, view) for buffer, view in zip(buffers, views)):
            sys.exit(f"{peer}, {size}^3: other bytes")
    mebibytes = sum(buffer.numel() * buffer.element_size() for buffer in buffers) / (1 << 20)
    return f"{size}^3, {str(dtype).removeprefix('torch.')}", mebibytes, clock.medians(calls)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plot")
    options = parser.parse_args()
    clock = Clock()
    rows = [measured(clock, size, dtype) for size in (32, 128, 256, 512) for dtype in (torch.float32, torch.float64)]
    table(rows, PEERS)
    if options.plot:
        plot(rows, PEERS, options.plot)


if __name__ == "__main__":
    main()
