#!/usr/bin/env python3
"""Blocks by a table, as a PyTorch programmer moves them, timed on one GPU beside `dtc-bench --part tables`.

    torch_tables.py OUT.jsonl

Writes one JSON object per line: case, peer, what, packed_bytes, cold_us. Needs PyTorch alone. Exits 3 if a result was wrong.
"""

import json
import sys

import torch

ROUNDS = 9
FLUSH_BYTES = 256 << 20
# Places of a pool for each that is listed.
POOL = 4


def cases():
    """Name; shape of the memory in elements of 2 bytes; the axis that the table indexes; the view whose axis 0 to n are in packed order."""
    return [
        ("A Llama-3-8B, blocks of 32 KiB", (64, 512 * POOL, 16384), 512, lambda x: (x.transpose(0, 1), 0)),
        ("B Llama-3-70B TP8, blocks of 4 KiB", (160, 512 * POOL, 2048), 512, lambda x: (x.transpose(0, 1), 0)),
        ("C one head of four, 256 of 1,024 bytes", (160, 512 * POOL, 16, 4, 128), 512, lambda x: (x[:, :, :, 0], 1)),
        ("D DeepSeek-V3, rows of 656 bytes", (61, 32768 * POOL, 328), 32768, lambda x: (x, 1)),
        ("D rows of 576 bytes", (61, 32768 * POOL, 288), 32768, lambda x: (x, 1)),
        ("E Kimi K3 DCP 8, rows of 576 bytes", (24, 876 * POOL, 64, 288), 876, lambda x: (x[:, :, ::8], 1)),
        ("F Qwen3-235B, heads of 256 bytes, permuted", (188, 128 * POOL, 64, 4, 128), 128, lambda x: (x.permute(1, 3, 0, 2, 4), 0)),
    ]


class Clock:
    def __init__(self):
        self.flushed = torch.empty(FLUSH_BYTES, dtype=torch.uint8, device="cuda")
        self.value = 0

    def time(self, call):
        for _ in range(2):
            self.value = (self.value + 1) % 251
            self.flushed.fill_(self.value)
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        call()
        end.record()
        end.synchronize()
        return start.elapsed_time(end) * 1e3


def selected(view, axis, index, out):
    out.copy_(view.index_select(axis, index))


def stored(view, axis, index, packed):
    view.index_copy_(axis, index, packed)


def measure(clock, case, run):
    name, shape, entries, as_view = case
    memory = torch.randint(-30000, 30000, shape, dtype=torch.int16, device="cuda")
    runs = torch.randperm(entries * POOL // run, device="cuda")[: (entries + run - 1) // run]
    index = (runs[:, None] * run + torch.arange(run, device="cuda")).flatten()[:entries]
    view, axis = as_view(memory)
    expected = view.index_select(axis, index)
    name = name if run == 1 else f"{name}, in runs of {run}"
    packed = torch.empty_like(expected)
    torch._dynamo.reset()
    compiled_select = torch.compile(selected, dynamic=False)
    compiled_store = torch.compile(stored, dynamic=False)
    bytes_moved = expected.numel() * 2
    packs = [
        ("torch index_select", lambda: torch.index_select(view, axis, index, out=packed)),
        ("torch.compile", lambda: compiled_select(view, axis, index, packed)),
        ("memcpy", lambda: packed.copy_(expected)),
    ]
    for peer, call in packs:
        packed.fill_(-23131)
        call()
        if not torch.equal(packed, expected):
            sys.exit(3)
    original = memory.clone()
    unpacks = [
        ("torch index_copy_", lambda: view.index_copy_(axis, index, packed)),
        ("torch.compile", lambda: compiled_store(view, axis, index, packed)),
    ]
    packed.random_(-30000, 30000)
    view.index_copy_(axis, index, packed)
    stored_by_eager = memory.clone() if memory.numel() < 1 << 31 else None
    for peer, call in unpacks:
        memory.copy_(original)
        call()
        if not torch.equal(view.index_select(axis, index), packed):
            sys.exit(3)
        if stored_by_eager is not None and not torch.equal(memory, stored_by_eager):
            sys.exit(3)
    for what, calls in (("pack", packs), ("unpack", unpacks)):
        samples = {peer: [] for peer, _ in calls}
        for _ in range(ROUNDS):
            for peer, call in calls:
                samples[peer].append(clock.time(call))
        for peer, times in samples.items():
            us = sorted(times)[len(times) // 2]
            yield {"peer": peer, "case": name, "what": what, "packed_bytes": bytes_moved, "cold_us": round(us, 3)}


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    clock = Clock()
    with open(sys.argv[1], "w", encoding="utf-8") as out:
        for run in (1, 8):
            for case in cases():
                for figure in measure(clock, case, run):
                    out.write(json.dumps(figure) + "\n")
                    out.flush()
                    print(f"{figure['case']:55} {figure['what']:7} {figure['peer']:20} {figure['packed_bytes'] / figure['cold_us'] / 1e3:9.1f} GB/s", flush=True)
                torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
