"""Of tasks: each in one place with one end, no late result heard, no more runs than its retries say."""

from collections import Counter, defaultdict
from collections.abc import Iterator

from tests.chaos.checker.ledgers import Ledgers, Line
from tests.chaos.checker.requests import AWAY, DEATHS, SLACK, TICK
from tests.chaos.checker.tables import Story, Tables, pid_of

WAITING, RUNNING, SUCCESS, RETRY, TERMINAL = "0", "1", "2", "3", "4"
MOVES = {
    (WAITING, RUNNING),
    (RETRY, RUNNING),
    (RUNNING, SUCCESS),
    (RUNNING, RETRY),
    (RUNNING, TERMINAL),
    (RUNNING, WAITING),
}
# Their handlers never fail by themselves.
STEADY = ("QUICK", "SLOW")
TIMED_OUT = "Task timed out (Worker crashed?)"


def check_tasks(ledgers: Ledgers, tables: Tables) -> Iterator[str]:
    yield from _places(ledgers, tables)
    runs: dict[int, list[Line]] = defaultdict(list)
    for run in ledgers.runs:
        runs[run["task"]].append(run)
    ids = tables.task_ids()
    calls = {ids[key] for key in tables.calls() if key in ids}
    steady = {ids.get(key) for key, line in ledgers.tasks.items() if line.get("biz_type") in STEADY}
    for id, story in tables.of("task").items():
        wrongs = _call(ledgers, story) if id in calls else _story(ledgers, story, runs[id])
        yield from (f"task {id} {wrong}" for wrong in wrongs)
        if id in steady:
            yield from (f"task {id} {wrong}" for wrong in _too_soon(ledgers, story))


def _places(ledgers: Ledgers, tables: Tables) -> Iterator[str]:
    """Each that was committed is in the queue, or in the history, or was removed from there by retention."""
    archived = tables.of("archived")
    places = Counter(row["biz_key"] for row in (*tables.tasks, *tables.archived))
    places.update(story.last.note for story in archived.values() if story.is_removed)
    known = {**ledgers.tasks, **ledgers.doubtful_tasks, **tables.calls()}
    yield from (f"task {key} is in {count} places" for key, count in places.items() if count > 1)
    yield from (f"task {key} is there and nobody committed it" for key in places if key not in known)
    missing = [key for key in (*ledgers.tasks, *tables.calls()) if not places[key]]
    if missing:
        yield f"{len(missing)} tasks are nowhere: {missing[:5]}"
    for id, story in tables.of("task").items():
        if story.is_removed and id not in archived:
            yield f"task {id} left the queue and did not come into the history"
        if story.is_removed and story.changes[-1].old_status not in (SUCCESS, TERMINAL):
            yield f"task {id} left the queue in status {story.changes[-1].old_status}"
    for id, story in archived.items():
        yield from (f"task {id} {wrong}" for wrong in _archived(story, tables.of("task").get(id)))


def _archived(story: Story, before: Story | None) -> Iterator[str]:
    """It came once, as it ended in the queue, in the moment in which it left it."""
    if before is None or not before.is_removed:
        yield "is in the history and did not leave the queue"
        return
    came = [change for change in story.changes if change.op == "I"]
    if len(came) != 1:
        yield f"came into the history {len(came)} times"
    ended = (before.last.new_status, before.last.new_token, before.last.number)
    if any((one.new_status, one.new_token, one.number) != ended for one in came):
        yield f"is in the history as {came[0].new_status} of version {came[0].new_token}, and ended as {ended}"


def _story(ledgers: Ledgers, story: Story, lines: list[Line]) -> Iterator[str]:
    yield from _moves(ledgers, story)
    end, claims, claimed_at = story.last, 0, 0.0
    runs = Counter(line["what"] for line in lines)
    for move in (change for change in story.changes if change.op == "U"):
        if move.new_status == RUNNING:
            claims, claimed_at = claims + 1, move.at
        if move.new_status == SUCCESS and not _was_done(lines, pid_of(move.worker), claimed_at, move.at):
            yield f"ended well while {move.worker} had not done it"
    if end.new_status == SUCCESS and not runs["done"]:
        yield "ended well, and no handler has done it"
    if not runs["begun"] <= min(claims, (end.number or 0) + 1):
        yield f"ran {runs['begun']} times, was claimed {claims} times and counts {end.number} retries"


def _too_soon(ledgers: Ledgers, story: Story) -> Iterator[str]:
    """Who only fails by being out of time does not fail before: that would be another one's result."""
    claimed_at, least = 0.0, ledgers.limits.get("handler_seconds", 0.0)
    for move in (change for change in story.changes if change.op == "U"):
        if move.new_status == RUNNING:
            claimed_at = move.at
        elif move.new_status in (RETRY, TERMINAL) and TIMED_OUT not in (move.note or ""):
            took = move.at - claimed_at
            if took < least - TICK:
                yield f"failed after {took:.2f} s, and {move.worker} had not done it for as long as it may"


def _call(ledgers: Ledgers, story: Story) -> Iterator[str]:
    """A call to an endpoint: whatever comes of it, its task ends well, unless something happened to who made it."""
    yield from _moves(ledgers, story, "")


def _moves(ledgers: Ledgers, story: Story, taken: str = TIMED_OUT) -> Iterator[str]:
    """Each of them allowed, under a new version; `taken` is what is said of one that somebody lost."""
    end, claimed_at = story.last, 0.0
    for move in (change for change in story.changes if change.op == "U"):
        if (move.old_status, move.new_status) not in MOVES:
            yield f"moved {move.old_status} → {move.new_status}"
        if move.new_token != (move.old_token or 0) + 1:
            yield f"moved from version {move.old_token} to {move.new_token}"
        if move.new_status == RUNNING:
            claimed_at = move.at
        if move.new_status in (RETRY, TERMINAL) and taken in (move.note or ""):
            pid = pid_of(move.worker)
            if not ledgers.explain((*DEATHS, *AWAY), pid, claimed_at - SLACK, move.at):
                yield f"was taken from {move.worker}, to whom nothing had happened"
    if end.new_status not in (SUCCESS, TERMINAL):
        yield f"is in status {end.new_status}"
    if end.new_status == TERMINAL and end.number != end.place:
        yield f"was given up after {end.number} of {end.place} retries"


def _was_done(lines: list[Line], pid: int | None, begin: float, end: float) -> bool:
    """By whoever held it: the handler says so before its worker does."""
    return any(
        line["what"] == "done" and line["pid"] == pid and begin - TICK <= line["at"] <= end + TICK for line in lines
    )
