"""Blocks of a key-value cache: gathered by a table into one buffer, sent to pinned memory, and scattered into another cache.

    python blocks.py [--plot FILE.svg]

Compares libdtc with `index_select`, `index_copy_` and what torch.compile makes of them, on a GPU. All results are compared byte by byte.
"""

import argparse
import sys

import torch

import libdtc
from measuring import Clock, drawn, plot, poisoned, same, settled, table

# Places of the pool for each that is listed.
POOL = 4
PEERS = ["PyTorch", "torch.compile"]
# Name; shape of the cache; the axis that the table indexes; entries. 8 bytes an element, which PyTorch moves faster than bfloat16.
CASES = [
    ("A: Llama-3-8B, blocks of 32 KiB", (64, 512 * POOL, 4096), 512),
    ("B: Llama-3-70B TP8, blocks of 4 KiB", (160, 512 * POOL, 512), 512),
    ("D: DeepSeek-V3, rows of 656 bytes", (61, 32768 * POOL, 82), 32768),
]


def selected(cache, index, out):
    torch.index_select(cache, 1, index, out=out)


def stored(cache, index, packed):
    cache.index_copy_(1, index, packed)


def measured(clock, name, shape, entries):
    cache = drawn(shape, torch.int64)
    index = torch.randperm(shape[1], device="cuda")[:entries]
    expected = cache.index_select(1, index)
    layout = libdtc.layout(cache)[:, libdtc.index("blocks", max=entries)]
    packed, other = poisoned(expected), poisoned(cache)
    wanted = poisoned(cache).index_copy_(1, index, expected)
    torch._dynamo.reset()
    compiled_select, compiled_store = (torch.compile(call, dynamic=False) for call in (selected, stored))
    gather = {
        "libdtc": lambda: layout.pack(cache, packed, blocks=index),
        "PyTorch": lambda: selected(cache, index, packed),
        "torch.compile": lambda: compiled_select(cache, index, packed),
    }
    scatter = {
        "libdtc": lambda: layout.unpack(expected, other, blocks=index),
        "PyTorch": lambda: stored(other, index, expected),
        "torch.compile": lambda: compiled_store(other, index, expected),
    }
    for calls, result, right in [(gather, packed, expected), (scatter, other, wanted)]:
        settled(calls["libdtc"])
        for peer, call in calls.items():
            result.view(torch.uint8).fill_(0xA5)
            call()
            if not same(result, right):
                sys.exit(f"{peer}, {name}: other bytes")
    pinned = torch.empty_like(expected, device="cpu", pin_memory=True)
    onto = torch.empty_like(expected)

    def by_pytorch(select, store):
        select(cache, index, packed)
        pinned.copy_(packed, non_blocking=True)
        onto.copy_(pinned, non_blocking=True)
        store(other, index, onto)

    def at_once():
        # The GPU reads and writes pinned memory: no buffer of its own in between.
        layout.pack(cache, pinned, stream=torch.cuda.current_stream(), blocks=index)
        layout.unpack(pinned, other, stream=torch.cuda.current_stream(), blocks=index)

    through = {
        "libdtc": at_once,
        "PyTorch": lambda: by_pytorch(selected, stored),
        "torch.compile": lambda: by_pytorch(compiled_select, compiled_store),
    }
    settled(at_once)
    for peer, call in through.items():
        other.view(torch.uint8).fill_(0xA5)
        pinned.view(torch.uint8).fill_(0xA5)
        call()
        torch.cuda.synchronize()
        if not same(other, wanted):
            sys.exit(f"{peer}, {name}, through pinned memory: other bytes")
    mebibytes = expected.numel() * 8 / (1 << 20)
    rows = [(f"{name}, gather", mebibytes, clock.medians(gather)), (f"{name}, scatter", mebibytes, clock.medians(scatter))]
    return rows + [(f"{name}, to pinned memory and back", mebibytes, clock.medians(through))]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plot")
    options = parser.parse_args()
    clock = Clock()
    rows = [row for case in CASES for row in measured(clock, *case)]
    table(rows, PEERS)
    if options.plot:
        plot(rows, PEERS, options.plot)


if __name__ == "__main__":
    main()
