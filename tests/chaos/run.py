"""One run: everything is begun, load and faults go on beside each other, all comes to its end, and is judged."""

import asyncio
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.chaos.attendants import Attendant
from tests.chaos.checker import Verdict, judge
from tests.chaos.crew import Crew
from tests.chaos.fire import Fire
from tests.chaos.ground import MAX_DELAY, Ground
from tests.chaos.schedule import Tier, schedule
from tests.support.waiting import eventually, pause

MOST_SHOWN = 25


@dataclass
class Report:
    """What came of a run; `problems` must be empty."""

    kind: str
    tier: Tier
    seed: int
    planted: str = ""
    problems: list[str] = field(default_factory=list)
    rare: list[str] = field(default_factory=list)
    verdict: Verdict | None = None
    kills: int = 0
    restarts: int = 0
    stalls: int = 0
    began_after: float = 0.0
    drained_in: float = 0.0
    seconds: float = 0.0
    most_memory: int = 0
    most_files: int = 0
    most_growth: int = 0
    faults: list[str] = field(default_factory=list)

    @property
    def replay(self) -> str:
        words = f".venv/bin/python -m tests.chaos --engine {self.kind} --tier {self.tier.name} --seed {self.seed}"
        words += f" --seconds {self.tier.seconds:g}" if self.tier.is_shortened else ""
        return f"{words} --plant {self.planted}" if self.planted else words

    def __str__(self) -> str:
        lines = [f"chaos {self.tier.name} on {self.kind}, seed {self.seed}: {self.seconds:.0f} s"]
        lines += [
            f"  {self.kills} kills, {self.restarts} restarts, the machine stood still {self.stalls} times;"
            f" begun after {self.began_after:.1f} s, drained in {self.drained_in:.1f} s"
        ]
        if self.verdict:
            lines += [f"  {name}: {value:g}" for name, value in self.verdict.figures.items()]
            lines += [f"  sometimes {name}: {count}" for name, count in sorted(self.verdict.sometimes.items())]
        lines += [f"  at most {self.most_memory >> 20} MiB and {self.most_files} descriptors in a process"]
        lines += [f"  at most {self.most_growth / 2**20:.1f} MiB more than half a minute after its start"]
        if self.problems or self.rare:
            lines += ["  faults:", *(f"    {fault}" for fault in self.faults)]
            lines += [f"  WRONG: {problem}" for problem in self.problems[:MOST_SHOWN]]
            lines += [f"  … and {len(self.problems) - MOST_SHOWN} more"] if len(self.problems) > MOST_SHOWN else []
            lines += [f"  TOO RARE: {name}" for name in self.rare]
            lines += [f"  again: {self.replay}"]
        return "\n".join(lines)


async def run(kind: str, tier: Tier, seed: int, folder: Path, planted: str = "") -> Report:
    began = time.monotonic()
    report = Report(kind, tier, seed, planted)
    ground = Ground(kind, tier, seed, folder, planted)
    crew: Crew | None = None
    try:
        await ground.lay()
        crew = Crew(folder, ground.environments())
        fire = Fire(ground, crew)
        ground.receiver.on_line = fire.hear_receiver
        ground.relay.on_line = fire.hear_relay
        await crew.start()
        report.began_after = time.monotonic() - began
        await _go_through(ground, crew, fire, report)
        await crew.end(tier.lease + 20)
        report.problems += [*crew.problems, *fire.problems]
        report.verdict = await asyncio.to_thread(judge, folder, ground.witness)
        report.problems += report.verdict.problems
        report.rare = report.verdict.rare(tier.sometimes, tier.wanted)
    finally:
        if crew is not None:
            await crew.abandon()
            report.kills, report.most_memory, report.most_files = crew.kills, crew.most_memory, crew.most_files
            report.most_growth = crew.most_growth
        await ground.clear()
        report.seconds = time.monotonic() - began
    return report


async def _go_through(ground: Ground, crew: Crew, fire: Fire, report: Report) -> None:
    producer = await Attendant("tests.chaos.producer", str(ground.folder / "producer.json")).start()
    produced = ground.folder / "produced.jsonl"
    watching = [asyncio.create_task(_measure(crew)), asyncio.create_task(fire.watch_the_machine())]
    try:
        # On a machine that has much to do, they take as long as half a schedule to begin.
        await eventually(produced.exists, 60, "the producers to begin")
        await fire.burn(schedule(ground.tier, ground.seed))
        try:
            if await asyncio.wait_for(producer.wait(), ground.tier.seconds + 120):
                report.problems.append("the producers failed")
        except TimeoutError:
            report.problems.append("the producers did not come to an end")
        report.drained_in = await _drain(ground, report)
        await fire.settle()
        if "task removed" in ground.tier.wanted:
            await _until_removed(ground)
    finally:
        for task in watching:
            task.cancel()
        await producer.stop()
        report.restarts, report.stalls, report.faults = fire.restarts, fire.stalls, fire.log


async def _drain(ground: Ground, report: Report) -> float:
    """Everything comes to its end within a lease, the longest delay and a minute after the last fault (§5.2, 11)."""
    began, bound = time.monotonic(), ground.tier.lease + MAX_DELAY + ground.tier.patience
    while unfinished := await asyncio.to_thread(ground.witness.unfinished):
        if time.monotonic() - began > bound:
            report.problems.append(f"not at its end after {bound:g} s: {unfinished}")
            break
        await pause(0.25)
    return time.monotonic() - began


async def _until_removed(ground: Ground) -> None:
    """Where tasks are all there is, until upkeep has come to them; if it does not, the checker says so."""
    left = "SELECT COUNT(*) AS n FROM sys_pending_tasks"
    gone = "SELECT COUNT(*) AS n FROM chaos_history WHERE what = 'archived' AND op = 'D'"

    async def is_so() -> bool:
        counts = [(await asyncio.to_thread(ground.witness.rows, text))[0]["n"] for text in (left, gone)]
        return not counts[0] and bool(counts[1])

    with suppress(AssertionError):
        await eventually(is_so, ground.tier.archive_after + ground.tier.kept + 30, "upkeep")


async def _measure(crew: Crew) -> None:
    while True:
        crew.measure()
        await pause(2)
