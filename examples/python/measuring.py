"""What the examples share: a clock for a GPU, a comparison of bytes, and bars as a picture."""

import math
import statistics
import time

import torch

FLUSH_BYTES = 256 << 20
ROUNDS = 15


class Clock:
    """Times calls on the current stream, with the second-level cache of the GPU emptied before each."""

    def __init__(self):
        self.flushed, self.value = torch.empty(FLUSH_BYTES, dtype=torch.uint8, device="cuda"), 0

    def once(self, call):
        self.value = (self.value + 1) % 251
        self.flushed.fill_(self.value)
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        call()
        end.record()
        end.synchronize()
        return start.elapsed_time(end) * 1e3

    def medians(self, calls):
        """Microseconds of each call, which take turns. They include the host's time where that is longer than the GPU's."""
        times = {name: [] for name in calls}
        for _ in range(ROUNDS):
            for name, call in calls.items():
                times[name].append(self.once(call))
        return {name: statistics.median(all) for name, all in times.items()}


def drawn(shape, dtype):
    """A tensor of random bytes."""
    item = torch.empty(0, dtype=dtype).element_size()
    words = torch.randint(0, 256, (*shape[:-1], shape[-1] * item), dtype=torch.uint8, device="cuda")
    return words.view(dtype)


def poisoned(tensor):
    """A tensor of the same form, whose bytes are all 0xA5."""
    made = torch.empty_like(tensor)
    made.view(torch.uint8).fill_(0xA5)
    return made


def same(one, other):
    return torch.equal(one.contiguous().view(torch.uint8), other.contiguous().view(torch.uint8))


def settled(call):
    """Calls until the kernels of a type have been compiled by the background, which generic kernels stand in for."""
    for _ in range(4):
        call()
        torch.cuda.synchronize()
        time.sleep(0.3)


def table(rows, peers):
    """Prints microseconds, and each peer's time over that of libdtc."""
    print(f"| case | MiB | libdtc, us | {' | '.join(f'{peer}, us | ratio' for peer in peers)} |")
    print(f"| --- | ---: | ---: | {' | '.join('---: | ---:' for _ in peers)} |")
    for name, mebibytes, us in rows:
        others = " | ".join(f"{us[peer]:,.1f} | {us[peer] / us['libdtc']:.2f}" for peer in peers)
        print(f"| {name} | {mebibytes:,.1f} | {us['libdtc']:,.1f} | {others} |")


def plot(rows, peers, path):
    """Writes the ratios as bars, on a scale by factors of two: what is right of the line is slower than libdtc."""
    colors = ["#2563eb", "#ea580c", "#059669"]
    step = 14 * len(peers) + 10
    height = 64 + step * len(rows)
    ratios = [us[peer] / us["libdtc"] for _, _, us in rows for peer in peers]
    low, high = min(0, math.log2(min(ratios))), max(1, math.log2(max(ratios)))
    x = lambda ratio: 300 + 400 * (math.log2(ratio) - low) / (high - low)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="760" height="{height}" font-family="sans-serif" font-size="12">']
    parts.append(f'<rect width="760" height="{height}" fill="white"/>')
    legend = ", ".join(f"{peer} ({name})" for peer, name in zip(peers, ["blue", "orange", "green"]))
    parts.append(f'<text x="10" y="20">Time over that of libdtc: {legend}</text>')
    for at, (name, _, us) in enumerate(rows):
        y = 40 + step * at
        parts.append(f'<text x="10" y="{y + 11}">{name}</text>')
        for number, peer in enumerate(peers):
            ratio = us[peer] / us["libdtc"]
            begin, end = sorted([x(1), x(ratio)])
            top = y + 14 * number
            parts.append(f'<rect x="{begin:.1f}" y="{top}" width="{max(end - begin, 0.5):.1f}" height="12" fill="{colors[number]}"/>')
            parts.append(f'<text x="{end + 4:.1f}" y="{top + 10}" font-size="10">{ratio:.2f}</text>')
    parts.append(f'<line x1="{x(1):.1f}" x2="{x(1):.1f}" y1="30" y2="{height - 14}" stroke="black" stroke-dasharray="3 3"/></svg>')
    with open(path, "w") as file:
        file.write("\n".join(parts) + "\n")
