"""Measures podbench, the tool and the floor in turns and prints a page. run.sh starts it."""

import argparse
import contextlib
import datetime
import signal
import sys
import tempfile

import figures
from contenders import Floor, Ours, Tool
from figures import FLOOR, OURS, TOOL
from process import Failed, run, say
from rounds import Bench
from world import Namespace, Person, busy, machine, versions

PAGE = """\
# Benchmarks

Written by `./dev bench --write`; `tests/bench/README.md` says how each figure is made.

- {date}: {rounds} rounds, {connects} connects
- {machine}
- {programs}, {versions}

A cell is a median and, where the samples differ, p10–p90. The tool is `podbench==0.11.0` from PyPI with a
seat image rebuilt from its wheel on our base; that image has Debian's Python instead of a CPython of its own
and is smaller for it. The floor is one PUT, one watch and one `kubectl exec true`; for `--help` it is `true`.

{table}

{ratios}
"""


def page(bench, rounds):
    """The whole document."""
    named = {OURS: "podbench", TOOL: "the tool: podbench"}
    programs = {who: bench.contenders[who].program for who in named if who in bench.contenders}
    said = {who: run([program, "--version"]).stdout.split() for who, program in programs.items()}
    text = PAGE.format(
        date=f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d}",
        rounds=rounds,
        connects=bench.connects,
        machine=machine(),
        programs=", ".join(f"{named[who]} {words[-1] if words else '?'}" for who, words in said.items()),
        versions=versions(),
        table=figures.table(bench.samples),
        ratios=figures.ratios(bench.samples),
    )
    if TOOL not in bench.contenders:
        text += "\nThe tool couldn't be built here and wasn't measured.\n"
    if bench.troubles:
        text += "\nWhat went wrong:\n\n" + "".join(f"- {words}\n" for words in bench.troubles)
    return text


def arguments():
    """What run.sh found."""
    asked = argparse.ArgumentParser(prog="bench.py", description=__doc__)
    asked.add_argument("--rounds", type=int, required=True)
    asked.add_argument("--connects", type=int, required=True)
    asked.add_argument("--ours", required=True, help="the program")
    asked.add_argument("--image", required=True, help="its seat image")
    asked.add_argument("--archive", help="that image, as built")
    asked.add_argument("--slim", help="the slim one, as built")
    asked.add_argument("--tool", help="the other program")
    asked.add_argument("--tool-image", help="its seat image")
    asked.add_argument("--tool-archive", help="that image, as built")
    return asked.parse_args()


def main():
    """The exit code: 0; 1 for a count that is wrong or beyond its budget; 2 where ours doesn't attach at all."""
    asked = arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    busy()
    with contextlib.ExitStack() as guards:
        enter = guards.enter_context
        folder = enter(tempfile.TemporaryDirectory())
        namespace = enter(Namespace())
        contenders = {OURS: Ours(asked.ours, enter(Person(asked.image)), namespace.name)}
        if asked.tool:
            contenders[TOOL] = Tool(asked.tool, enter(Person(asked.tool_image)), namespace.name)
        contenders[FLOOR] = Floor(asked.image, enter(Person(asked.image)), namespace.name)
        bench = Bench(namespace, contenders, asked.connects)
        bench.sizes("full", OURS, asked.archive)
        bench.sizes("slim", OURS, asked.slim)
        bench.sizes("full", TOOL, asked.tool_archive)
        say("round 0: warm, and count")
        bench.count(folder)
        for at in range(1, asked.rounds + 1):
            bench.round(at, asked.rounds)
        bench.total()
        sys.stdout.write(page(bench, asked.rounds))
    broken = [row.what for row in figures.ROWS if row.broken(bench.samples)]
    for what in broken:
        say(f"beyond the budget: {what}")
    return 1 if broken or bench.miscounted else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failed as e:
        say(e)
        sys.exit(2)
