"""Processes whose clocks are wrong by minutes, each by its own: only the database's decides, so nothing changes."""

from dataclasses import dataclass, replace
from pathlib import Path

from tests.chaos.schedule import Tier
from tests.machines.trial import Report, TrialGround, under_way

# Not those whose handlers write moments into a ledger of ours.
WRONG_BY = {
    "router-1": "+5m",
    "router-2": "-5m",
    "orchestrator-1": "-5m",
    "orchestrator-2": "+5m",
    "worker-1": "+5m",
    "worker-2": "-5m",
    "cleaner-1": "+5m",
    "rescuer-1": "+5m",
}


def library() -> Path | None:
    """Debian's libfaketime."""
    return next(iter(sorted(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"))), None)


def why_not() -> str:
    return "" if library() else "libfaketime is not installed (Debian: libfaketime)"


@dataclass
class ClocksGround(TrialGround):
    def environments(self) -> dict[str, dict[str, str]]:
        return {
            name: {**given, **(_wrong(WRONG_BY[name]) if name in WRONG_BY else {})}
            for name, given in super().environments().items()
        }


def _wrong(by: str) -> dict[str, str]:
    # Deadlines and leases are measured by the other clock, which no wrong date on a machine changes either.
    return {"LD_PRELOAD": str(library()), "FAKETIME": by, "FAKETIME_DONT_FAKE_MONOTONIC": "1"}


async def wrong(kind: str, tier: Tier, folder: Path) -> Report:
    """Nothing is broken, so nothing comes twice, nothing comes too early, and every signature is of this minute."""
    report = Report(f"clocks that are wrong on {kind}")
    # As long as in an installation: nobody may lose a lease because this machine has much to do.
    ground = ClocksGround(kind, replace(tier, lease=30.0), 1, folder)
    async with under_way(ground, report) as trial:
        await trial.producers_end()
        report.figures["seconds until all had come to its end"] = await trial.drained()
        verdict = await trial.judged(report)
        if verdict.figures["duplicates"]:
            report.problems.append("something came twice, and nothing was broken")
    return report
