"""Runs the blocks of the book that need a GPU, and those for the command, for C and for Python, which take other paths beside one.

    python3 tests/gpu/book.py --prefix PREFIX [--two-gpus COMMAND] [--programs FOLDER] [--page NAME]

PREFIX is what `cargo xtask install` or a tarball of a release installed; the pages call it /opt/dtc. The Python that runs this has libdtc and
PyTorch. With `--two-gpus`, blocks for two GPUs run too, and their `mpirun` is this command; programs that they expect and that no block
makes are in FOLDER. Prints a line for each page, and ends with 1 if a block failed. Needs no module beside Python's own.
"""

import argparse
import contextlib
import io
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import traceback

ROOT = pathlib.Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^<!-- (\w+)(?:: ([^\n]*))? -->\n```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Failure(Exception):
    """A block that failed, and what it printed."""


def expect_printed(expected, printed):
    """Each line was printed; `...` in a line stands for any text."""
    for line in filter(None, (line.strip() for line in expected.splitlines())):
        pattern = ".*".join(re.escape(part.strip()) for part in line.split("..."))
        if line != "..." and not any(re.search(pattern, found) for found in printed.splitlines()):
            raise Failure(f"expected the line {line} in\n{printed}")


class Machine:
    """Where blocks run: the installation, and a folder of programs that is searched before the folders of the system."""

    def __init__(self, prefix, mpirun, programs):
        self.prefix, self.programs = prefix, programs
        self.tools = pathlib.Path(tempfile.mkdtemp(prefix="dtc-book-"))
        if mpirun:
            self.add("mpirun", f'exec {mpirun} "$@"')
        if not shutil.which("pkg-config"):
            # Knows dtc alone, and the flags that its file has.
            self.add("pkg-config", f'echo "-I{prefix}/include -L{prefix}/lib -ldtc"')

    def add(self, name, line):
        script = self.tools / name
        script.write_text(f"#!/bin/sh\n{line}\n")
        script.chmod(0o755)

    def shell(self, text, folder):
        """What a script prints, which must end well."""
        environment = dict(os.environ, PATH=f"{self.tools}:{self.prefix}/bin:{os.environ['PATH']}")
        script = text.replace("/opt/dtc", str(self.prefix))
        ran = subprocess.run(["bash", "-euc", script], cwd=folder, env=environment, capture_output=True, timeout=600)
        printed = (ran.stdout + ran.stderr).decode(errors="replace")
        if ran.returncode != 0:
            raise Failure(f"status {ran.returncode} of\n{script}\n{printed}")
        return printed


def python(text, place, names):
    """What a program prints, with the names of the blocks before it."""
    out = io.StringIO()
    try:
        with contextlib.redirect_stdout(out):
            exec(compile(text, place, "exec"), names)
    except Exception:
        raise Failure(f"{out.getvalue()}{traceback.format_exc()}") from None
    return out.getvalue()


def run_page(page, stages, machine):
    """Runs the blocks of a page in its own folder; how many of which stage."""
    names, printed, ran = {"__name__": "example"}, None, {}
    with tempfile.TemporaryDirectory(prefix="dtc-page-") as folder:
        folder = pathlib.Path(folder)
        for name in ("examples", "ir-examples"):
            (folder / name).symlink_to(ROOT / name)
        for program in machine.programs.iterdir() if machine.programs else ():
            (folder / program.name).symlink_to(program.resolve())
        before = os.getcwd()
        os.chdir(folder)
        try:
            for kind, what, language, text in BLOCK.findall(page.read_text()):
                if kind == "file":
                    (folder / what).write_text(text)
                elif kind == "run" and what in stages:
                    printed = python(text, f"{page.name}", names) if language == "python" else machine.shell(text, folder)
                    ran[what] = ran.get(what, 0) + 1
                elif kind == "prints" and printed is not None:
                    expect_printed(text, printed)
                else:
                    printed = None
        finally:
            os.chdir(before)
    return ran


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prefix", required=True, type=pathlib.Path)
    parser.add_argument("--two-gpus", metavar="COMMAND")
    parser.add_argument("--programs", type=pathlib.Path)
    parser.add_argument("--page", default="")
    options = parser.parse_args()
    prefix = options.prefix.resolve()
    if not (prefix / "lib/libdtc.so").exists():
        sys.exit(f"book.py: --prefix: expected an installation of dtc, found no lib/libdtc.so in {prefix}")
    stages = {"command", "installed", "python", "gpu"} | ({"two-gpus"} if options.two_gpus else set())
    machine = Machine(prefix, options.two_gpus, options.programs)
    total, failed = {}, 0
    for page in sorted((ROOT / "docs").rglob("*.md")):
        name, start = str(page.relative_to(ROOT)), time.monotonic()
        if options.page not in name:
            continue
        try:
            ran = run_page(page, stages, machine)
        except (Failure, subprocess.TimeoutExpired, OSError) as failure:
            failed += 1
            print(f"FAILED {name}: {failure}", flush=True)
            continue
        for stage, count in ran.items():
            total[stage] = total.get(stage, 0) + count
        if ran:
            counts = ", ".join(f"{count} {stage}" for stage, count in sorted(ran.items()))
            print(f"passed {name}: {counts}, {time.monotonic() - start:.1f} s", flush=True)
    shutil.rmtree(machine.tools)
    print(f"blocks: {dict(sorted(total.items()))}; {failed} pages failed")
    missing = [stage for stage in stages if not total.get(stage) and not options.page]
    if missing:
        print(f"book.py: expected blocks of {missing}, found none")
    sys.exit(bool(failed or missing))


main()
