"""What must have happened now and then: where no report ever came late, nothing was proven about late reports."""

from collections import Counter
from collections.abc import Iterator
from operator import itemgetter
from pathlib import Path

from tests.chaos.checker.ledgers import Ledgers
from tests.chaos.checker.requests import TICK, Received, leased_at, received_more_than_once
from tests.chaos.checker.tables import Story, Tables
from tests.chaos.checker.tasks import TIMED_OUT

LONGEST_ANSWER = {"slow": 0.9, "drips": 0.6}
# In the log lines of the product, which is where only its processes know it.
TOLD = {
    "late report refused": "report came too late",
    "late result of a task refused": "result of a task came too late",
    "step run again": "step runs again",
    "deadlock, step run again": "eadlock",
    "commit of unknown outcome": "lost in COMMIT",
}

REQUIRED = (
    *TOLD,
    "report kept while the database was away",
    "lease taken over",
    "job given back unsent",
    "outcome unknown",
    "address refused",
    "event delivered twice",
    "dead letter after expired leases",
    "event behind the cursor",
    "circuit closed in",
    "circuit opened up",
    "next generation",
    "story removed",
    "two signatures",
    "event accepted by the API",
    "endpoint verified",
    "call made again",
    "producer in doubt",
    "producer rolled back",
    "task rescued",
    "task archived",
    "task removed",
)


def count_sometimes(ledgers: Ledgers, tables: Tables) -> Counter[str]:
    found = Counter(dict.fromkeys(TOLD, 0))
    for line in log_lines(ledgers.folder):
        found.update(name for name, words in TOLD.items() if words in line)
    found.update(_of_jobs(tables))
    found.update(_of_tasks(tables))
    found["event delivered twice"] = received_more_than_once(ledgers.requests)
    found["dead letter after expired leases"] = sum(
        story.last.new_status == "DeadLettered" and story.last.note == "lease_expired"
        for story in tables.of("saga").values()
    )
    found["report kept while the database was away"] = _kept(ledgers, tables)
    found["event behind the cursor"] = _behind(tables)
    lanes = [change for story in tables.of("lane").values() for change in story.changes]
    found["circuit closed in"] = sum((lane.new_token or 0) < (lane.old_token or 0) for lane in lanes)
    found["circuit opened up"] = sum((lane.new_token or 0) > (lane.old_token or 0) for lane in lanes)
    found["next generation"] = sum(story.first.place != 0 for story in tables.of("saga").values())
    found["story removed"] = sum(story.is_removed for story in tables.of("event").values())
    found["two signatures"] = sum(" " in request.signature for request in ledgers.requests)
    found["event accepted by the API"] = sum(line.get("by") == "api" for line in ledgers.events.values())
    found["endpoint verified"] = sum(
        (row["kind"], row["outcome"]) == ("verification", "passed") for row in tables.checks
    )
    found["call made again"] = _made_again(tables)
    found["producer in doubt"] = len(ledgers.doubtful)
    found["producer rolled back"] = len(ledgers.rolled_back)
    return found


def _kept(ledgers: Ledgers, tables: Tables) -> int:
    """Answers that came while the server was away, to whoever held the lease before and reported afterwards."""
    received, count = Received(ledgers, tables), 0
    outages = [(one.at, one.back) for one in ledgers.broken if one.back is not None]
    for pair, jobs in received.jobs.items():
        # Those that take their time may have answered only when it was there again.
        longest = LONGEST_ANSWER.get(ledgers.subscriptions[pair[1]].kind, 0.0)
        for job in jobs:
            leased, reported = _last_lease(job)
            for gone, back in outages:
                if leased <= gone and reported >= back:
                    count += any(
                        one.attempt == job.first.place and leased - TICK <= one.at < back - longest
                        for one in received.requests.get(pair, ())
                    )
    return count


def _last_lease(job: Story) -> tuple[float, float]:
    """From when it was held, and when its holder told what was answered."""
    return leased_at(job), max((move.at for move in job.moves if move.answer is not None), default=0.0)


def log_lines(folder: Path) -> Iterator[str]:
    for path in sorted((folder / "logs").glob("*.log")):
        yield from path.read_text("utf-8", "replace").splitlines()


def _of_jobs(tables: Tables) -> Iterator[str]:
    for story in tables.of("job").values():
        resets = 0
        for move in story.moves:
            if move.old_status == "Leased" and move.new_status == "Pending":
                yield "lease taken over" if (move.number or 0) > resets else "job given back unsent"
            resets = move.number or 0
        match story.last.note:
            case "lease_expired":
                yield "outcome unknown"
            case "blocked_address":
                yield "address refused"
            case "timeout":
                yield "request timed out"


def _of_tasks(tables: Tables) -> Iterator[str]:
    for story in tables.of("task").values():
        if any(TIMED_OUT in (move.note or "") for move in story.changes):
            yield "task rescued"
        if story.is_removed:
            yield "task archived"
    yield from ("task removed" for story in tables.of("archived").values() if story.is_removed)


def _made_again(tables: Tables) -> int:
    """Calls whose caller died or stood still meanwhile, so that another one took them over."""
    ids, tasks = tables.task_ids(), tables.of("task")
    stories = [tasks.get(ids.get(key, 0), Story()) for key in tables.calls()]
    return sum(any(TIMED_OUT in (move.note or "") for move in story.changes) for story in stories)


def _behind(tables: Tables) -> int:
    """Events that were routed after one with a higher id: their transaction was still open when the cursor passed."""
    firsts = sorted((story.first for story in tables.of("saga").values() if story.first.place == 0), key=itemgetter(0))
    highest, found = 0, set[int]()
    for event in (first.parent_id or 0 for first in firsts):
        if event < highest:
            found.add(event)
        highest = max(highest, event)
    return len(found)
