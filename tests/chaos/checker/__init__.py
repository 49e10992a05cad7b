"""The checker: reads three ledgers and the database, and says what is not as it must be; no code of the product in it.

`python -m tests.chaos.checker FOLDER URL SCHEMA` judges a run again.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.chaos.checker.calls import check_calls
from tests.chaos.checker.deliveries import check_deliveries
from tests.chaos.checker.ledgers import Ledgers, read_ledgers
from tests.chaos.checker.requests import check_requests
from tests.chaos.checker.sometimes import REQUIRED, count_sometimes, log_lines
from tests.chaos.checker.tables import Tables, Witness
from tests.chaos.checker.tasks import check_tasks

__all__ = ["Verdict", "Witness", "compare", "judge"]

UNPLANNED = ("nobody planned for", "refuses a row", "role crashed", "through our fault")


@dataclass(frozen=True)
class Verdict:
    """`problems` must be empty; `sometimes` says how often what should happen now and then did."""

    problems: list[str]
    sometimes: Counter[str]
    figures: dict[str, float]

    def rare(self, least: int, wanted: Sequence[str] = ()) -> list[str]:
        """What did not happen as often as it must, so that the run proves something."""
        return [f"{name}: {self.sometimes[name]}" for name in wanted or REQUIRED if self.sometimes[name] < least]


def judge(folder: Path, witness: Witness) -> Verdict:
    """All that was written down about a run that has come to its end."""
    return compare(read_ledgers(folder), witness.read())


def compare(ledgers: Ledgers, tables: Tables) -> Verdict:
    problems = [
        *check_deliveries(ledgers, tables),
        *check_requests(ledgers, tables),
        *check_tasks(ledgers, tables),
        *check_calls(ledgers, tables),
        *_audit(ledgers, tables),
        *_logs(ledgers, tables),
    ]
    return Verdict(problems, count_sometimes(ledgers, tables), _figures(ledgers, tables))


def _audit(ledgers: Ledgers, tables: Tables) -> Iterator[str]:
    """As many rows as orders that were carried out; one whose answer was lost may be there or not."""
    written = Counter(row["action"] for row in tables.audit if row["actor"] == "chaos")
    told: Counter[str] = Counter()
    doubtful: Counter[str] = Counter()
    for order in ledgers.orders:
        for action in order.get("audited", ()):
            (doubtful if order.get("in_doubt") else told)[action] += 1
    for action in {*written, *told}:
        if not told[action] <= written[action] <= told[action] + doubtful[action]:
            yield f"the audit log has {written[action]} × {action}, and {told[action]} were carried out"


def _logs(ledgers: Ledgers, tables: Tables) -> Iterator[str]:
    """No process met something that nobody had planned for, and none of them told a secret or a payload."""
    secrets = [secret.removeprefix("whsec_") for one in ledgers.subscriptions.values() for _, secret in one.secrets]
    requeued = _requeued(tables)
    for line in log_lines(ledgers.folder):
        # A handler's own failure is told within a line of JSON; ours would stand by itself.
        unplanned = line.startswith("Traceback") or any(words in line for words in UNPLANNED)
        if unplanned and not any(words in line for words in requeued):
            yield f"in a log: {line[:300]}"
        if "canary-" in line or any(secret in line for secret in secrets):
            yield f"a log tells what it must not: {line[:300]}"


def _requeued(tables: Tables) -> list[str]:
    """How retention tells that it left an event alone: the database kept what got a next generation just then."""
    events = {story.first.parent_id for story in tables.of("saga").values() if story.first.place}
    return [f'"role": "retention", "row": "event:{event}"' for event in events]


def _figures(ledgers: Ledgers, tables: Tables) -> dict[str, float]:
    sagas = tables.of("saga").values()
    takeovers = sorted(
        move.at - move.until_at
        for story in tables.of("job").values()
        for move in story.moves
        if move.old_status == "Leased"
        and move.until_at
        and move.at > move.until_at
        and move.new_status in ("Pending", "Failed")
        and move.answer is None
    )
    return {
        "events": len(tables.of("event")),
        "sagas": len(sagas),
        "completed": sum(story.last.new_status == "Completed" for story in sagas),
        "dead": sum(story.last.new_status == "DeadLettered" for story in sagas),
        "jobs": len(tables.of("job")),
        "requests": len(ledgers.requests),
        "duplicates": sum(
            count - 1
            for count in Counter((one.path, one.message) for one in ledgers.requests if one.went_well).values()
            if count > 1
        ),
        "tasks": len(tables.of("task")),
        "slowest takeover after a lease's end": round(takeovers[-1], 2) if takeovers else 0.0,
    }
