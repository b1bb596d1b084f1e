#!/usr/bin/env python3
"""What a PyTorch programmer would use in place of dtc, timed on one GPU.

    torch_peers.py OUT.jsonl [bench/gpu/cases.json [PART-OF-A-NAME]]

Writes one JSON object per line, as peers.cu does; README.md tells how to read them. Needs PyTorch alone. Exits 2 for wrong
arguments, 3 if a result was wrong, 4 without a GPU or if the time was not enough.
"""

import json
import math
import os
import signal
import sys
import time

ROUNDS = 9
FLUSH_BYTES = 256 << 20
GUARD_BYTES = 4096
CUT_OFF_SECONDS = 10
LAST_START_SECONDS = 125
ALARM_SECONDS = 148
POISON = 0xA5
# So long does a kernel hold the device while the host enqueues what is timed; in cycles of at most 2 GHz.
HOLD_CYCLES = 600_000
# What is compared or converted at once, so that temporaries stay small.
PIECE = 1 << 28


def signed(word):
    return word - (1 << 64) if word >> 63 else word


def shifted(z, bits):
    """A logical shift of signed words."""
    return (z >> bits) & ((1 << (64 - bits)) - 1)


def mix(z):
    """The output function of SplitMix64 on a tensor of signed words, which wrap."""
    z = (z ^ shifted(z, 30)) * signed(0xBF58476D1CE4E5B9)
    z = (z ^ shifted(z, 27)) * signed(0x94D049BB133111EB)
    return z ^ shifted(z, 31)


def draw(indices, seed):
    return mix((indices + 1) * signed(0x9E3779B97F4A7C15) + seed)


def view_of(shape):
    """Word width, sizes and strides in words, and offset in words, of a strided view in packed order."""
    numbers = [shape["offset_bytes"], shape["element_bytes"], *shape["strides_bytes"]]
    width = math.gcd(16, *numbers)
    sizes, strides = list(shape["sizes"]), [stride // width for stride in shape["strides_bytes"]]
    if shape["element_bytes"] > width or not sizes:
        sizes.append(shape["element_bytes"] // width)
        strides.append(1)
    return width, sizes, strides, shape["offset_bytes"] // width


def list_of(torch, shape, device):
    """Offsets and lengths of a list in units, and the bytes of a unit; checked against the index."""
    number = shape["runs"] if shape["kind"] == "runs" else shape["blocks"]
    indices = torch.arange(number, dtype=torch.int64, device=device)
    drawn = draw(indices, shape["seed"])
    if shape["kind"] == "runs":
        unit, most = shape["unit_bytes"], shape["most_units"]
        lengths, gaps = 1 + (drawn & 0xFFFFFFFF) % most, 1 + shifted(drawn, 32) % most
        steps = lengths + gaps
        offsets = torch.cumsum(steps, 0) - steps
    else:
        unit = shape["block_bytes"]
        # Unsigned order: the sign bit comes last.
        offsets = torch.argsort(drawn ^ signed(1 << 63))
        lengths = torch.ones_like(offsets)
    words = mix(mix(2 * indices) ^ (offsets * unit)) + mix(mix(2 * indices + 1) ^ (lengths * unit))
    found = int(words.sum().item()) & ((1 << 64) - 1)
    if f"{found:016x}" != shape["checksum"]:
        raise ValueError(f"expected the checksum {shape['checksum']}, found {found:016x}")
    return offsets, lengths, unit


def units_of(torch, offsets, lengths):
    """The place of every unit, in packed order."""
    ends = torch.cumsum(lengths, 0)
    total = int(ends[-1].item())
    shift = torch.repeat_interleave(offsets - (ends - lengths), lengths, output_size=total)
    return torch.arange(total, dtype=torch.int64, device=offsets.device) + shift


def width_types(torch):
    return {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64, 16: torch.complex128}


def peers_of(torch, case, device):
    """Functions that make the peers of a case: name -> (memory, packed) -> (pack, unpack), where both are bytes."""
    shape, packed_bytes = case["shape"], case["packed_bytes"]
    types = width_types(torch)
    if shape["kind"] == "nest":
        width, sizes, strides, offset = view_of(shape)

        def copy(memory, packed):
            words = memory[: memory.numel() // width * width].view(types[width])
            strided = words.as_strided(sizes, strides, offset)
            dense = packed[:packed_bytes].view(types[width]).view(sizes)
            return lambda: dense.copy_(strided), lambda: strided.copy_(dense)

        return {"torch copy_": copy}
    offsets, lengths, unit = list_of(torch, shape, device)

    def selected(index, width):
        def select(memory, packed):
            if width > 8:
                rows = memory[: memory.numel() // width * width].view(torch.int32).view(-1, width // 4)
                dense = packed[:packed_bytes].view(torch.int32).view(-1, width // 4)
            else:
                rows = memory[: memory.numel() // width * width].view(types[width])
                dense = packed[:packed_bytes].view(types[width])
            pack = lambda: torch.index_select(rows, 0, index, out=dense)
            return pack, lambda: rows.index_copy_(0, index, dense)

        return select

    if shape["kind"] == "blocks":
        return {"torch index_select": selected(offsets, unit)}
    return {"torch index_select": selected(units_of(torch, offsets, lengths), unit)}


def places_of(torch, case, device):
    """The place of every byte in packed order, piece by piece: (first packed byte, places). Shares no view with a peer."""
    shape, total = case["shape"], case["packed_bytes"]
    if shape["kind"] != "nest":
        offsets, lengths, unit = list_of(torch, shape, device)
        units = units_of(torch, offsets, lengths)
        step = max(1, PIECE // 8 // unit)
        for start in range(0, units.numel(), step):
            part = units[start : start + step]
            places = part[:, None] * unit + torch.arange(unit, dtype=torch.int64, device=device)
            yield start * unit, places.reshape(-1)
        return
    step = PIECE // 8
    for start in range(0, total, step):
        packed = torch.arange(start, min(start + step, total), dtype=torch.int64, device=device)
        element = shape["element_bytes"]
        places = packed % element + shape["offset_bytes"]
        rest = packed // element
        for size, stride in reversed(list(zip(shape["sizes"], shape["strides_bytes"]))):
            places += rest % size * stride
            rest //= size
        yield start, places


def rounded(number):
    return (number + GUARD_BYTES + 15) // 16 * 16


def equal(torch, a, b):
    return all(torch.equal(a[at : at + PIECE], b[at : at + PIECE]) for at in range(0, a.numel(), PIECE))


def random_bytes(torch, number, device):
    result = torch.empty(number, dtype=torch.uint8, device=device)
    result.view(torch.int64).random_()
    return result


class Bench:
    def __init__(self, torch, cases, out):
        self.torch, self.out, self.wrong = torch, out, False
        device = self.device = torch.device("cuda")
        span = rounded(max(case["buffer_bytes"] for case in cases))
        packed = rounded(max(case["packed_bytes"] for case in cases))
        bare = lambda number: torch.empty(number, dtype=torch.uint8, device=device)
        self.source, self.target, self.wanted = random_bytes(torch, span, device), bare(span), bare(span)
        self.packed_source = random_bytes(torch, packed, device)
        self.packed_target, self.packed_wanted = bare(packed), bare(packed)
        self.flushed, self.flushes = bare(FLUSH_BYTES), 0

    def line(self, peer, case, direction, **rest):
        start = {"peer": peer, "case": case["name"], "direction": direction, "packed_bytes": case["packed_bytes"]}
        self.out.write(json.dumps(start | rest) + "\n")
        self.out.flush()

    def flush(self):
        self.flushes += 1
        self.flushed.fill_(self.flushes % 256)

    def run(self, case):
        torch = self.torch
        span, packed = rounded(case["buffer_bytes"]), rounded(case["packed_bytes"])
        wanted, packed_wanted = self.wanted[:span], self.packed_wanted[:packed]
        wanted.fill_(POISON)
        packed_wanted.fill_(POISON)
        for start, places in places_of(torch, case, self.device):
            end = start + places.numel()
            packed_wanted[start:end] = self.source[places]
            wanted[places] = self.packed_source[start:end]
        made = peers_of(torch, case, self.device)
        pack = {name: make(self.source, self.packed_target)[0] for name, make in made.items()}
        unpack = {name: make(self.target, self.packed_source)[1] for name, make in made.items()}
        self.measure(case, "pack", pack, self.packed_target[:packed], packed_wanted)
        self.measure(case, "unpack", unpack, self.target[:span], wanted)

    def measure(self, case, direction, peers, result, wanted):
        torch = self.torch
        none = {"cold_us": None, "warm_us": None}
        rounds, sound = ROUNDS, []
        for name, call in peers.items():
            try:
                result.fill_(POISON)
                torch.cuda.synchronize()
                before = time.monotonic()
                call()
                torch.cuda.synchronize()
                elapsed = time.monotonic() - before
                if elapsed > CUT_OFF_SECONDS:
                    self.line(name, case, direction, **none, cut_off=True)
                    continue
                if elapsed > 0.5:
                    rounds = 3
                if not equal(torch, result, wanted):
                    self.wrong = True
                    raise RuntimeError("wrong bytes")
                sound.append(name)
            except RuntimeError as error:
                self.line(name, case, direction, **none, error=str(error).splitlines()[0])
        times = {name: ([], []) for name in sound}
        for _ in range(rounds):
            for name in sound:
                for warm in (False, True):
                    times[name][warm].append(self.time_once(peers[name], warm))
        for name in sound:
            cold, warm = (sorted(part)[rounds // 2] for part in times[name])
            self.line(name, case, direction, cold_us=round(cold, 3), warm_us=round(warm, 3), rounds=rounds)

    def time_once(self, call, warm):
        torch = self.torch
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        call() if warm else self.flush()
        torch.cuda._sleep(HOLD_CYCLES)
        begin.record()
        call()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) * 1e3


def too_late(*_):
    # Every line is flushed when it is written.
    os.write(2, f"torch_peers: expected to end within {ALARM_SECONDS} s, found more to do\n".encode())
    os._exit(4)


def main(arguments):
    if not 1 <= len(arguments) <= 3:
        print(__doc__.split("\n\n")[1].strip(), file=sys.stderr)
        return 2
    started = time.monotonic()
    signal.signal(signal.SIGALRM, too_late)
    signal.alarm(ALARM_SECONDS)
    beside = os.path.join(os.path.dirname(os.path.abspath(__file__)), "cases.json")
    with open(arguments[1] if len(arguments) > 1 else beside, encoding="utf-8") as file:
        cases = json.load(file)["cases"]
    if len(arguments) > 2:
        cases = [case for case in cases if arguments[2] in case["name"]]
    import torch

    if not torch.cuda.is_available():
        print("torch_peers: expected a GPU that PyTorch can use, found none", file=sys.stderr)
        return 4
    with open(arguments[0], "w", encoding="utf-8") as out, torch.inference_mode():
        bench = Bench(torch, cases, out)
        for case in cases:
            error = "no time left"
            if time.monotonic() - started <= LAST_START_SECONDS:
                try:
                    bench.run(case)
                    continue
                except (RuntimeError, ValueError) as failure:
                    error = str(failure).splitlines()[0]
            for direction in ("pack", "unpack"):
                bench.line("torch", case, direction, cold_us=None, warm_us=None, error=error)
    print(f"torch_peers: torch {torch.__version__}, {time.monotonic() - started:.1f} s", file=sys.stderr)
    return 3 if bench.wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
