"""Sequence parallelism as by Ulysses: attention wants all of the sequence for some heads, and the other layers some of it for all heads.

    python heads.py [--plot FILE.svg]

Before the all-to-all between P GPUs, the heads for each become one piece; behind it, the pieces of the sequence become one again. Compares
these permutes by libdtc with those by PyTorch and by torch.compile, on one GPU. All bytes are compared.
"""

import argparse
import sys

import torch

import libdtc
from measuring import Clock, drawn, plot, poisoned, same, settled, table

PEERS = ["PyTorch", "torch.compile"]
# Name; GPUs; batch; sequence; heads; elements of a head, which are bfloat16.
CASES = [
    ("P = 4, 1 x 32,768 x 32 x 128", 4, 1, 32768, 32, 128),
    ("P = 8, 1 x 65,536 x 64 x 128", 8, 1, 65536, 64, 128),
    ("P = 8, 2 x 16,384 x 24 x 128", 8, 2, 16384, 24, 128),
    ("P = 2, 4 x 4,096 x 12 x 64", 2, 4, 4096, 12, 64),
    ("P = 8, 1 x 75,600 x 40 x 128", 8, 1, 75600, 40, 128),
]


def copied(out, view):
    out.copy_(view)


def measured(clock, name, view_of, x):
    """The permute that a view of a tensor stands for."""
    view = view_of(x)
    expected = view.contiguous()
    out = poisoned(expected)
    layout = libdtc.layout(view)
    torch._dynamo.reset()
    compiled = torch.compile(copied, dynamic=False)
    calls = {"libdtc": lambda: layout.pack(view, out), "PyTorch": lambda: copied(out, view), "torch.compile": lambda: compiled(out, view)}
    settled(calls["libdtc"])
    for peer, call in calls.items():
        out.view(torch.uint8).fill_(0xA5)
        call()
        if not same(out, expected):
            sys.exit(f"{peer}, {name}: other bytes")
    return name, expected.numel() * expected.element_size() / (1 << 20), clock.medians(calls)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plot")
    options = parser.parse_args()
    clock, rows = Clock(), []
    for name, gpus, batch, sequence, heads, elements in CASES:
        own = drawn((batch, sequence // gpus, gpus, heads // gpus, elements), torch.bfloat16)
        rows.append(measured(clock, f"{name}: heads apart", lambda x: x.permute(2, 0, 1, 3, 4), own))
        got = drawn((gpus, batch, sequence // gpus, heads // gpus, elements), torch.bfloat16)
        if batch > 1:
            rows.append(measured(clock, f"{name}: sequence together", lambda x: x.permute(1, 0, 2, 3, 4), got))
        rows.append(measured(clock, f"{name}: heads first", lambda x: x.permute(1, 3, 0, 2, 4), got))
    table(rows, PEERS)
    if options.plot:
        plot(rows, PEERS, options.plot)


if __name__ == "__main__":
    main()
