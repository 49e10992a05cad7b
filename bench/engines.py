"""What the programs share: which engines are measured, and where the figures go."""

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.showing import out
from bench.targets import Verdict, as_json
from tests.support.database import SERVERS

ENGINES = ("postgresql", "mariadb")


def parser_of(program: str, what: str, *, of_engines: bool = True) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=f"python -m bench.{program}", description=what)
    if of_engines:
        parser.add_argument("--engine", choices=ENGINES, help="measure this one only")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to a file too")
    return parser


def engines(chosen: str | None) -> Iterator[str]:
    """One after the other; the program ends where one is missing."""
    for engine in [chosen] if chosen else ENGINES:
        availability = SERVERS[engine].available()
        if not availability:
            sys.exit(availability.reason)
        yield engine


def conclude(file: Path | None, figures: Mapping[str, Any], judged: Sequence[Verdict]) -> None:
    """Says which targets are kept and which are missed, and writes it down with the figures."""
    for verdict in judged:
        out.print(str(verdict), markup=False)
    write_json(file, {**figures, "targets": as_json(judged)})


def write_json(file: Path | None, figures: Any) -> None:
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(figures, indent=2) + "\n")
