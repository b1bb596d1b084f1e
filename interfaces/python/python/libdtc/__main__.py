"""The command `python -m libdtc`: what the machine offers, what a layout becomes, and how fast it is moved."""

import argparse
import sys
import time

import libdtc

EXPLAINED = """\
An EXPRESSION of Python has as its value a view of an array or a layout. It may use `np` (NumPy), `libdtc`, `cupy` and `torch` if they are
there, as in

    python -m libdtc explain 'libdtc.layout((512, 512), "f8")[:, 1]'
    python -m libdtc bench 'np.zeros((512, 512))[:, 1]'
"""


class _Names(dict):
    """Modules by their names, imported where an expression uses them."""

    def __missing__(self, name):
        import importlib

        modules = {"np": "numpy", "numpy": "numpy", "cupy": "cupy", "cp": "cupy", "torch": "torch"}
        if name not in modules:
            raise KeyError(name)
        return importlib.import_module(modules[name])


def _value(expression):
    return eval(expression, {"libdtc": libdtc}, _Names())


def _seconds(call, is_done, rounds=9):
    """Seconds of one call: the least of `rounds` rounds of about a millisecond, after one that is not counted."""
    call()
    is_done()
    start = time.perf_counter()
    call()
    is_done()
    repeat = max(1, int(1e-3 / max(time.perf_counter() - start, 1e-9)))
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(repeat):
            call()
        is_done()
        best = min(best, (time.perf_counter() - start) / repeat)
    return best


def _peer(view, out):
    """What the library of a view copies with, its name, and what waits for the copies."""
    library = type(view).__module__.split(".")[0]
    if library == "torch":
        import torch

        return "out.copy_(view)", lambda: out.copy_(view), torch.cuda.synchronize if view.is_cuda else lambda: None
    if library == "cupy":
        import cupy

        return "out[...] = view", lambda: out.__setitem__(..., view), cupy.cuda.Device().synchronize
    import numpy

    return "numpy.copyto(out, view)", lambda: numpy.copyto(out, view), lambda: None


def _explain(expression):
    value = _value(expression)
    layout = value if isinstance(value, libdtc.Layout) else libdtc.layout(value)
    print(layout, end="\n\n")
    print(layout.explain(), end="")


def _bench(expression):
    view = _value(expression)
    if isinstance(view, libdtc.Layout):
        sys.exit("bench: expected a view of an array, found a layout")
    layout = libdtc.layout(view)
    out = layout.pack(view)
    name, peer, is_done = _peer(view, out)
    print(f"{layout.nbytes} bytes of {layout}")
    for called, call in [("layout.pack(view, out)", lambda: layout.pack(view, out)), (name, peer)]:
        seconds = _seconds(call, is_done)
        print(f"{called:24}  {seconds * 1e6:10.2f} us  {layout.nbytes / seconds / 1e9:8.2f} GB/s")


def main():
    """Runs the command."""
    parser = argparse.ArgumentParser(
        prog="python -m libdtc", description=__doc__, epilog=EXPLAINED, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("doctor", help="what this machine offers")
    commands.add_parser("explain", help="what the compiler makes of a layout").add_argument("expression")
    commands.add_parser("bench", help="a pack of a view beside the copy of its library").add_argument("expression")
    options = parser.parse_args()
    if options.command == "doctor":
        print(libdtc.doctor(), end="")
    elif options.command == "explain":
        _explain(options.expression)
    else:
        _bench(options.expression)


if __name__ == "__main__":
    main()
