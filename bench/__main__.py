"""All programs, one after the other: `python -m bench [--results FOLDER] [--only NAME …]`; what each is at is told.

Each prints its table and puts its figures into a file. One that fails does not stop the others; 1 at the end.
"""

import argparse
import subprocess
import sys
import time
from pathlib import Path

from bench.showing import say

PROGRAMS = (
    "guards",
    "courier",
    "routing",
    "ingest",
    "deliver",
    "scaling",
    "latency",
    "noisy",
    "idle",
    "tasks",
    "peers",
    "growth",
    "bloat",
    "memory",
    "console",
)
RESULTS = Path("build/bench")


def run(name: str, place: str, results: Path) -> bool:
    say(f"[{place}] bench.{name} …")
    began = time.monotonic()
    command = [sys.executable, "-m", f"bench.{name}", "--json", str(results / f"{name}.json")]
    ended = subprocess.run(command, check=False)
    word = "done" if not ended.returncode else f"ended with {ended.returncode}"
    say(f"[{place}] bench.{name}: {word} after {time.monotonic() - began:.0f} s")
    return not ended.returncode


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measures everything.")
    parser.add_argument("--results", type=Path, default=RESULTS, metavar="FOLDER", help="where the figures go")
    parser.add_argument("--only", choices=PROGRAMS, nargs="+", default=PROGRAMS)
    options = parser.parse_args()
    names = [name for name in PROGRAMS if name in options.only]
    good = [run(name, f"{number}/{len(names)}", options.results) for number, name in enumerate(names, 1)]
    sys.exit(0 if all(good) else 1)


if __name__ == "__main__":
    main()
