"""Plants each bug and writes into docs/reliability.md what has caught it.

`python -m tests.chaos.catching` tells its story to both engines, in a minute or two. `--fire mariadb` plants it into
whole processes under fire instead, one bug after the other, and each of those runs once without one; that takes about
a quarter of an hour. `--only NAME …` does so for some, and leaves the other lines as they are.
"""

import argparse
import asyncio
import datetime
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from tests.chaos.plants import PLANTS, planted
from tests.chaos.run import Report, run
from tests.chaos.schedule import TIERS
from tests.chaos.stories import told
from tests.support.database import SERVERS, Database

PAGE = Path(__file__).parents[2] / "docs" / "reliability.md"
ENGINES = ("postgresql", "mariadb")
NUMBERS = re.compile(r"\b[\w-]*\d[\w.-]*\b|\[[^\]]*\]")
CONTROLS = {f"nothing in {tier}": tier for tier in sorted({plant.fire for plant in PLANTS.values()})}
LONGEST_WORDS = 140


async def caught_on(kind: str) -> dict[str, list[str]]:
    """What the checker says of each bug in its story; nothing, if it does not notice."""
    server = SERVERS[kind]()
    with server:
        database = Database(server)
        await database.migrate()
        found: dict[str, list[str]] = {}
        for name, plant in PLANTS.items():
            with tempfile.TemporaryDirectory() as folder, planted(name):
                found[name] = (await told(plant.story, database, Path(folder))).problems
            await database.close()
            await database.empty()
            _say(f"{kind} {name}: {len(found[name])} problems")
        return found


def without_numbers(problem: str) -> str:
    return NUMBERS.sub("…", problem).replace("|", "/").replace("(…, …)", "…")[:LONGEST_WORDS]


def noticed(name: str, problems: Iterable[str]) -> list[str]:
    """What was said of just this bug, without numbers."""
    return [without_numbers(problem) for problem in problems if PLANTS[name].told in problem]


def of_stories(found: dict[str, dict[str, list[str]]]) -> list[str]:
    lines = _head("planted", "what it does", "who made it", "story", "what the checker says")
    for name, plant in PLANTS.items():
        says = {(noticed(name, found[kind][name]) or ["**not noticed**"])[0] for kind in found}
        lines.append(
            f"| `{name}` | {plant.does} | {plant.peers or '–'} | {plant.story} | {'<br>'.join(sorted(says))} |"
        )
    caught = {kind: sum(bool(noticed(name, of[name])) for name in PLANTS) for kind, of in found.items()}
    counts = ", ".join(f"{count} of {len(PLANTS)} on {kind}" for kind, count in caught.items())
    return [f"Caught: {counts}.", "", *lines]


async def tried(name: str, kind: str, seed: int) -> Report:
    """One run under fire with this bug, or with none."""
    tier = TIERS[CONTROLS[name] if name in CONTROLS else PLANTS[name].fire]
    with tempfile.TemporaryDirectory(prefix="tidings-catching-") as folder:
        return await run(kind, tier, seed, Path(folder), "" if name in CONTROLS else name)


def is_right(name: str, report: Report) -> bool:
    return not report.problems if name in CONTROLS else bool(noticed(name, report.problems))


def of_fire(name: str, report: Report) -> str:
    """One line: how often the checker said what, that which it must say first."""
    words = Counter(map(without_numbers, report.problems))
    wanted = [] if name in CONTROLS else noticed(name, report.problems)
    first = wanted[:1] or ["nothing wrong" if is_right(name, report) else "**not noticed**"]
    counted = f"{len(wanted)} × {first[0]}" if wanted else first[0]
    others = len(report.problems) - len(wanted)
    also = f", and {others} other lines" if others and wanted else ""
    also = also or (f": {words.most_common(1)[0][0]}" if others else "")
    broken = f"{report.kills} kills" if report.kills else f"{len(report.faults)} faults"
    when = f"`{report.tier.name}`, seed {report.seed}, {datetime.date.today()}"
    return f"| `{name}` | {counted}{also} | {when} | {broken}, {report.seconds:.0f} s |"


def under_fire(kind: str, names: list[str], seed: int) -> bool:
    """Each line is written when its run has ended."""
    all_right = True
    for name in names:
        try:
            report = asyncio.run(tried(name, kind, seed))
        except Exception as error:  # the next ones can still be tried
            _say(f"{name}: the run failed by itself: {error!r}")
            all_right = False
            continue
        all_right &= is_right(name, report)
        line = of_fire(name, report)
        _say(line)
        if not is_right(name, report):
            _say(str(report))
        _enter(kind, name, line)
    return all_right


def _enter(kind: str, name: str, line: str) -> None:
    """In place of what the page says of this one so far."""
    page = PAGE.read_text("utf-8")
    lines = {row.split("`")[1]: row for row in _block(page, kind) if row.startswith("| `")}
    lines[name] = line
    ordered = [lines[one] for one in (*CONTROLS, *PLANTS) if one in lines]
    caught = sum("not noticed" not in lines.get(one, "not noticed") for one in PLANTS)
    head = _head("planted", "what the checker said", "run", "under fire for")
    _write(page, kind, [f"Caught under fire on {kind}: {caught} of {len(PLANTS)}.", "", *head, *ordered])


def _head(*names: str) -> list[str]:
    return [f"| {' | '.join(names)} |", "|---" * len(names) + "|"]


def _block(page: str, name: str) -> list[str]:
    return page.split(_begin(name))[1].split(_end(name))[0].strip().splitlines()


def _write(page: str, name: str, lines: list[str]) -> None:
    before, rest = page.split(_begin(name))
    text = "\n".join(lines)
    PAGE.write_text(f"{before}{_begin(name)}\n{text}\n{_end(name)}{rest.split(_end(name))[1]}", encoding="utf-8")


def _begin(name: str) -> str:
    return f"<!-- caught, {name}: made by `python -m tests.chaos.catching` -->"


def _end(name: str) -> str:
    return f"<!-- end of caught, {name} -->"


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> int:
    words = argparse.ArgumentParser(prog="python -m tests.chaos.catching", description=__doc__)
    words.add_argument("--fire", choices=ENGINES, help="in whole processes, on this engine")
    words.add_argument("--seed", type=int, default=1)
    words.add_argument("--only", nargs="+", choices=[*CONTROLS, *PLANTS], default=[*CONTROLS, *PLANTS])
    given = words.parse_args()
    if given.fire:
        return int(not under_fire(given.fire, given.only, given.seed))
    found = {kind: asyncio.run(caught_on(kind)) for kind in ENGINES}
    _write(PAGE.read_text("utf-8"), "stories", of_stories(found))
    return int(any(not noticed(name, of[name]) for of in found.values() for name in PLANTS))


if __name__ == "__main__":
    sys.exit(main())
