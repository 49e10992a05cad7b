"""Plants each bug, tells its story, and writes into docs/reliability.md what has caught it on which engine.

`python -m tests.chaos.catching` makes the table anew; it takes a minute or two.
"""

import asyncio
import re
import sys
import tempfile
from pathlib import Path

from tests.chaos.plants import PLANTS, planted
from tests.chaos.stories import told
from tests.support.database import SERVERS, Database

PAGE = Path(__file__).parents[2] / "docs" / "reliability.md"
BEGIN, END = "<!-- caught: made by `python -m tests.chaos.catching` -->", "<!-- end of caught -->"
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


def table(found: dict[str, dict[str, list[str]]]) -> str:
    lines = ["| planted | what it does | who made it | story | what the checker says |", "|---|---|---|---|---|"]
    for name, plant in PLANTS.items():
        says = {in_words(found[kind][name]) for kind in found}
        lines.append(f"| `{name}` | {plant.does} | {plant.peers} | {plant.story} | {'<br>'.join(sorted(says))} |")
    caught = {kind: sum(bool(problems) for problems in of.values()) for kind, of in found.items()}
    counts = ", ".join(f"{count} of {len(PLANTS)} on {kind}" for kind, count in caught.items())
    return "\n".join([f"Caught: {counts}.", "", *lines])


def main() -> int:
    found = {kind: asyncio.run(caught_on(kind)) for kind in SERVERS}
    page = PAGE.read_text("utf-8")
    before, after = page.split(BEGIN)[0], page.split(END)[1]
    PAGE.write_text(f"{before}{BEGIN}\n{table(found)}\n{END}{after}", encoding="utf-8")
    return int(any(not problems for of in found.values() for problems in of.values()))


if __name__ == "__main__":
    sys.exit(main())
