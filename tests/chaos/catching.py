"""Plants each bug, tells its story, and writes into docs/reliability.md what has caught it on which engine.

`python -m tests.chaos.catching` makes the table anew; it takes a minute or two. With `--fire` each is also planted into
whole processes under fire, on both engines at once, which takes twenty; otherwise that column stays as it is.
"""

import asyncio
import re
import sys
import tempfile
from pathlib import Path

from tests.chaos.plants import PLANTS, planted
from tests.chaos.run import run
from tests.chaos.schedule import SMOKE
from tests.chaos.stories import told
from tests.support.database import SERVERS, Database

PAGE = Path(__file__).parents[2] / "docs" / "reliability.md"
BEGIN, END = "<!-- caught: made by `python -m tests.chaos.catching` -->", "<!-- end of caught -->"
ENGINES = ("postgresql", "mariadb")
COLUMNS = 6
NUMBERS = re.compile(r"\b[\w-]*\d[\w.-]*\b|\[[^\]]*\]")


async def caught_on(kind: str) -> dict[str, list[str]]:
    """What the checker says of each bug; nothing, if it does not notice."""
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
            sys.stdout.write(f"{kind} {name}: {len(found[name])} problems\n")
        return found


def in_words(problems: list[str]) -> str:
    """The first of them, without its numbers."""
    if not problems:
        return "**not noticed**"
    return NUMBERS.sub("…", problems[0]).replace("|", "/").replace("(…, …)", "…")[:140]


async def caught_under_fire() -> dict[str, str]:
    """What the checker says of each bug in a short run of real processes, on either engine."""
    found: dict[str, str] = {}
    for name in (name for name, plant in PLANTS.items() if plant.shows_under_fire):
        with tempfile.TemporaryDirectory() as folder:
            reports = await asyncio.gather(*(run(kind, SMOKE, 1, Path(folder, kind), name) for kind in ENGINES))
        missed = [report.kind for report in reports if not report.problems]
        sys.stdout.write(f"under fire, {name}: {[len(report.problems) for report in reports]} problems\n")
        sys.stdout.flush()
        found[name] = f"not on {' and '.join(missed)}" if missed else "yes"
    return found


def written_before(page: str) -> dict[str, str]:
    """The last column of the table that is there."""
    rows = [line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("| `")]
    return {cells[0].strip("`"): cells[-1] for cells in rows if len(cells) == COLUMNS}


def table(found: dict[str, dict[str, list[str]]], under_fire: dict[str, str]) -> str:
    heads = ["planted", "what it does", "who made it", "story", "what the checker says", "under fire"]
    lines = [f"| {' | '.join(heads)} |", "|---" * COLUMNS + "|"]
    for name, plant in PLANTS.items():
        says = "<br>".join(sorted({in_words(found[kind][name]) for kind in found}))
        fire = under_fire.get(name, "not tried" if plant.shows_under_fire else "needs its story")
        lines.append(f"| `{name}` | {plant.does} | {plant.peers or '–'} | {plant.story} | {says} | {fire} |")
    caught = {kind: sum(bool(problems) for problems in of.values()) for kind, of in found.items()}
    counts = ", ".join(f"{count} of {len(PLANTS)} on {kind}" for kind, count in caught.items())
    return "\n".join([f"Caught: {counts}.", "", *lines])


def main() -> int:
    found = {kind: asyncio.run(caught_on(kind)) for kind in ENGINES}
    page = PAGE.read_text("utf-8")
    under_fire = asyncio.run(caught_under_fire()) if "--fire" in sys.argv else written_before(page)
    page = PAGE.read_text("utf-8")
    before, after = page.split(BEGIN)[0], page.split(END)[1]
    PAGE.write_text(f"{before}{BEGIN}\n{table(found, under_fire)}\n{END}{after}", encoding="utf-8")
    return int(any(not problems for of in found.values() for problems in of.values()))


if __name__ == "__main__":
    sys.exit(main())
