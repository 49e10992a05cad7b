"""A load that runs while a test does something to the machines, and the judgement in the end."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from tests.chaos.attendants import Attendant
from tests.chaos.checker import Verdict, judge
from tests.chaos.crew import Crew
from tests.chaos.ground import MAX_DELAY, Ground
from tests.machines.sizes import CREW
from tests.support.database import Database
from tests.support.server_process import ServerProcess
from tests.support.waiting import eventually, pause


@dataclass
class Report:
    """`problems` must be empty; `figures` are what is good to know."""

    name: str
    problems: list[str] = field(default_factory=list)
    figures: dict[str, float] = field(default_factory=dict)
    seconds: float = 0.0

    def __str__(self) -> str:
        lines = [f"{self.name}: {self.seconds:.0f} s"]
        lines += [f"  {name}: {value:g}" for name, value in self.figures.items()]
        lines += [f"  WRONG: {problem}" for problem in self.problems[:25]]
        return "\n".join(lines)


class TrialGround(Ground):
    """A few processes, which come straight to their database; what a trial needs otherwise it overrides."""

    names: ClassVar[tuple[str, ...]] = CREW

    def environments(self) -> dict[str, dict[str, str]]:
        return {name: self._environment(name, is_relayed=False) for name in self.names}


class Trial:
    """Processes and producers at work on a ground."""

    def __init__(self, ground: Ground, crew: Crew, producer: Attendant) -> None:
        self.ground, self.crew = ground, crew
        self._producer = producer

    @property
    def folder(self) -> Path:
        return self.ground.folder

    def committed(self) -> set[str]:
        """What producers know to be stored: the events' correlation ids."""
        path = self.folder / "produced.jsonl"
        lines = path.read_text("utf-8").splitlines(keepends=True) if path.exists() else []
        said = [json.loads(line) for line in lines if line.endswith("\n")]
        return {line["correlation_id"] for line in said if (line["kind"], line["outcome"]) == ("event", "committed")}

    async def half_way(self, share: float = 0.5) -> None:
        """Until so much of the load is committed."""
        wanted = self.ground.tier.events * share
        await eventually(lambda: len(self.committed()) >= wanted, self.ground.tier.seconds + 60, "the load to go on")

    def broken(self, kind: str, at: float, until: float, pids: list[int] | None = None) -> None:
        """Into the ledger of faults, in the words of the checker; without `pids` it hit everybody."""
        with (self.folder / "broken.jsonl").open("a", encoding="utf-8") as file:
            for pid in pids or (None,):
                file.write(json.dumps({"kind": kind, "at": at, "until": until, "pid": pid}) + "\n")

    def move_to(self, server: ServerProcess, database: Database) -> None:
        """Producers and the checker ask this server from now on."""
        self.ground.database = database
        self.ground.witness = type(self.ground.witness)(server.admin_url, database.names.schema)
        self.ground.relay.tell(f"aim producers {server.port}")

    async def producers_end(self) -> None:
        assert await asyncio.wait_for(self._producer.wait(), self.ground.tier.seconds + 90) == 0

    async def drained(self) -> float:
        """Everything comes to its end in bounded time; how long it took."""
        began = time.monotonic()
        bound = self.ground.tier.lease + MAX_DELAY + 60
        while left := await asyncio.to_thread(self.ground.witness.unfinished):
            assert time.monotonic() - began < bound, f"not at its end after {bound:g} s: {left}"
            await pause(0.25)
        return time.monotonic() - began

    async def judged(self, report: Report, is_explained: Callable[[str], bool] = lambda problem: False) -> Verdict:
        """Everybody stops, and the three ledgers are compared; `is_explained`: what the trial itself has caused."""
        await self.crew.end(self.ground.tier.lease + 20)
        verdict = await asyncio.to_thread(judge, self.folder, self.ground.witness)
        report.problems += self.crew.problems
        report.problems += [problem for problem in verdict.problems if not is_explained(problem)]
        report.figures |= {name: verdict.figures[name] for name in ("events", "sagas", "requests", "duplicates")}
        return verdict


@asynccontextmanager
async def under_way(ground: Ground, report: Report) -> AsyncIterator[Trial]:
    """From laying the ground to clearing it; whatever fails in between is cleared up, too."""
    began = time.monotonic()
    crew: Crew | None = None
    producer: Attendant | None = None
    try:
        await ground.lay()
        crew = Crew(ground.folder, ground.environments())
        await crew.start()
        await eventually(lambda: asyncio.to_thread(_are_all_there, ground), 90, "all processes to be at work")
        producer = await Attendant("tests.chaos.producer", str(ground.folder / "producer.json")).start()
        yield Trial(ground, crew, producer)
    finally:
        if producer is not None:
            await producer.stop()
        if crew is not None:
            await crew.abandon()
        await ground.clear()
        report.seconds = time.monotonic() - began


def _are_all_there(ground: Ground) -> bool:
    (row,) = ground.witness.rows("SELECT COUNT(*) AS n FROM worker_presence")
    # The API shows itself by its port.
    return int(row["n"]) >= sum(not name.startswith("api") for name in ground.environments())
