"""Of events, sagas and jobs: nothing lost, nothing invented, every saga ended once, one active job at every moment."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import pairwise

from tests.chaos.checker.ledgers import Ledgers
from tests.chaos.checker.tables import Story, Tables

ENDS = {"Completed", "DeadLettered"}
FINISHED = {"Completed", "Failed"}
SAGA_MOVES = {
    ("Pending", "InProgress"),
    ("InProgress", "Completed"),
    ("InProgress", "PendingRetry"),
    ("InProgress", "DeadLettered"),  # by way of PendingRetry, in one UPDATE
    ("PendingRetry", "InProgress"),
    ("PendingRetry", "DeadLettered"),
}
# On a machine that has far too much to do.
LONGEST_STEP = 2.0
JOB_MOVES = {("Pending", "Leased"), ("Leased", "Completed"), ("Leased", "Failed"), ("Leased", "Pending")}


def check_deliveries(ledgers: Ledgers, tables: Tables) -> Iterator[str]:
    yield from _events(ledgers, tables)
    yield from _routing(ledgers, tables)
    yield from _generations(ledgers, tables)
    yield from _sagas(ledgers, tables)
    for story in tables.of("job").values():
        yield from _job(ledgers, story)
    yield from _active(tables)
    yield from _held(ledgers, tables)
    yield from _removed(tables)
    yield from _as_the_tables_say(tables)


def _events(ledgers: Ledgers, tables: Tables) -> Iterator[str]:
    """No loss, no phantom, nothing changed."""
    stored = {row["correlation_id"]: row for row in tables.events}
    removed = {story.last.note for story in tables.of("event").values() if story.is_removed}
    for correlation in ledgers.events.keys() - stored.keys() - removed:
        yield f"event {correlation} was committed and is not there"
    for correlation, row in stored.items():
        if correlation in ledgers.rolled_back and correlation not in ledgers.doubtful:
            yield f"event {correlation} is there and was rolled back"
            continue
        known = ledgers.events.get(correlation) or ledgers.doubtful.get(correlation)
        if known is None:
            yield f"event {correlation} is there and nobody committed it"
        elif (known["event_type"], known["payload"]) != (row["event_type"], row["payload"]):
            yield f"event {correlation} is not what its producer wrote"
    counts = Counter(row["correlation_id"] for row in tables.events)
    yield from (f"event {one} is there {times} times" for one, times in counts.items() if times > 1)


def _routing(ledgers: Ledgers, tables: Tables) -> Iterator[str]:
    """No event skipped; one saga of generation 0 for each event and subscription that wants it, and no other."""
    routed = {row["event_id"] for row in tables.routed}
    types = {row["id"]: row["event_type"] for row in tables.events}
    yield from (f"event {id} was never routed" for id in types if id not in routed)
    subscriptions = ledgers.subscriptions.values()
    wanting = {one: {its.id for its in subscriptions if its.wants(one)} for one in {*types.values()}}
    found: dict[int, Counter[int]] = defaultdict(Counter)
    for story in tables.of("saga").values():
        if story.first.place == 0:
            found[story.first.parent_id or 0][story.first.peer_id or 0] += 1
    for id, event_type in types.items():
        for subscription in wanting[event_type] - found[id].keys():
            yield f"event {id} has no saga for subscription {subscription}"
        for subscription in found[id].keys() - wanting[event_type]:
            yield f"event {id} has a saga for subscription {subscription}, which does not want it"
    for id, counts in found.items():
        yield from (f"event {id} has {n} sagas for subscription {one}" for one, n in counts.items() if n > 1)
        if id not in tables.of("event"):
            yield f"event {id} has sagas and was never there"


def _generations(ledgers: Ledgers, tables: Tables) -> Iterator[str]:
    """Without a gap, each after the end of the one before it, and no more than were asked for."""
    pairs: dict[tuple[int, int], list[Story]] = defaultdict(list)
    for story in tables.of("saga").values():
        pairs[story.first.parent_id or 0, story.first.peer_id or 0].append(story)
    asked = {saga for order in ledgers.orders for saga in order.get("sagas", ())}
    sure = {saga for order in ledgers.orders if not order.get("in_doubt") for saga in order.get("sagas", ())}
    for pair, stories in pairs.items():
        stories.sort(key=lambda story: story.first.place or 0)
        if [story.first.place for story in stories] != [*range(len(stories))]:
            yield f"event and subscription {pair} have generations {[story.first.place for story in stories]}"
        for before, after in pairwise(stories):
            ended = next((move.id for move in before.moves if move.new_status in ENDS), None)
            if ended is None or ended > after.first.id:
                yield f"event and subscription {pair} got a next generation before the last one had ended"
            if before.first.row_id not in asked:
                yield f"saga {before.first.row_id} has a successor that nobody asked for"
        if stories[-1].first.row_id in sure and not stories[-1].is_removed:
            yield f"saga {stories[-1].first.row_id} was requeued and has no successor"


def _sagas(ledgers: Ledgers, tables: Tables) -> Iterator[str]:
    jobs = tables.jobs_of()
    letters = Counter(story.first.parent_id for story in tables.of("letter").values() if story.first.op == "I")
    for id, story in tables.of("saga").items():
        name, own = f"saga {id}", jobs.get(id, [])
        status = story.last.new_status
        yield from (
            f"{name} moved {move.old_status} → {move.new_status}"
            for move in story.moves
            if (move.old_status, move.new_status) not in SAGA_MOVES
        )
        ends = [move for move in story.moves if move.new_status in ENDS]
        if len(ends) != 1:
            yield f"{name} is {status} and has ended {len(ends)} times"
        elif any(change.id > ends[0].id and change.op == "U" for change in story.changes):
            yield f"{name} was written to after its end"
        if letters[id] != (status == "DeadLettered"):
            yield f"{name} is {status} and has {letters[id]} dead letters"
        yield from _attempts(ledgers, name, story, own)
        yield from _delays(ledgers, name, story, own)
    yield from (f"jobs of saga {id}, which was never there" for id in jobs.keys() - tables.of("saga").keys())


def _attempts(ledgers: Ledgers, name: str, story: Story, jobs: list[Story]) -> Iterator[str]:
    """One counted attempt for each job, numbered without a gap; the last one tells the end; no more than the limit."""
    numbers = [job.first.place for job in jobs]
    if numbers != [*range(1, len(jobs) + 1)]:
        yield f"{name} has attempts {numbers}"
    if story.last.number != len(jobs):
        yield f"{name} counts {story.last.number} attempts and has {len(jobs)} jobs"
    limit = ledgers.subscriptions[story.first.peer_id or 0].max_retry_limit
    if len(jobs) > limit:
        yield f"{name} had {len(jobs)} attempts, of {limit} allowed"
    status = story.last.new_status
    if status == "DeadLettered" and len(jobs) < limit:
        yield f"{name} was given up after {len(jobs)} of {limit} attempts"
    good = [job for job in jobs if job.last.new_status == "Completed"]
    if len(good) != (status == "Completed"):
        yield f"{name} is {status} with {len(good)} jobs that went well"
    if good and good[-1] is not jobs[-1]:
        yield f"{name} was tried again after it had gone well"


def _delays(ledgers: Ledgers, name: str, story: Story, jobs: list[Story]) -> Iterator[str]:
    """By its own due time: after each failure the delay, or what the endpoint asked for if that is longer."""
    limits = ledgers.limits
    for move, after in pairwise(story.moves):
        if move.new_status != "PendingRetry" or after.until_at is None or not 0 < (move.number or 0) <= len(jobs):
            continue
        attempt = move.number or 0
        least = min(limits["base_delay"] * 2 ** (attempt - 1), limits["max_delay"])
        if jobs[attempt - 1].last.answer == 429:
            least = max(least, limits["busy_seconds"])
        if after.until_at - move.at < least - 0.1 * limits["base_delay"]:
            yield f"{name} was due {after.until_at - move.at:.3f} s after failure {attempt}, not {least} s"


def _job(ledgers: Ledgers, story: Story) -> Iterator[str]:
    name = f"job {story.first.row_id} of saga {story.first.parent_id}"
    if story.last.new_status not in FINISHED:
        yield f"{name} is {story.last.new_status}"
    tokens: set[int] = set()
    finished = False
    for change in story.changes:
        if change.op != "U":
            continue
        pair = (change.old_status, change.new_status)
        if pair[0] == pair[1]:
            continue
        if pair not in JOB_MOVES:
            yield f"{name} moved {pair[0]} → {pair[1]}"
        if finished:
            yield f"{name} moved after it was finished"
        finished = finished or pair[1] in FINISHED
        if pair[1] in ("Leased", "Pending"):
            if change.new_token in tokens or change.new_token == change.old_token:
                yield f"{name} moved {pair[0]} → {pair[1]} under a token that somebody may still have"
            tokens.add(change.new_token or 0)
        if pair[1] == "Completed" and change.old_token != change.new_token:
            yield f"{name} was completed under another token than it was leased"
    most = int(ledgers.limits["max_lease_resets"]) + 1
    if (story.last.number or 0) > most:
        yield f"{name} lost its lease {story.last.number} times, of {most}"


def _active(tables: Tables) -> Iterator[str]:
    """By the history: a saga never had more than one job that was pending or leased."""
    changes = [change for story in tables.of("job").values() for change in story.changes if change.op in ("I", "U")]
    active: Counter[int | None] = Counter()
    for change in sorted(changes, key=lambda one: one.id):
        was = change.op == "U" and change.old_status not in FINISHED
        active[change.parent_id] += (change.new_status not in FINISHED) - was
        if active[change.parent_id] > 1:
            yield f"saga {change.parent_id} had {active[change.parent_id]} active jobs"


def _held(ledgers: Ledgers, tables: Tables) -> Iterator[str]:
    """While a subscription was paused, no attempt to it began, but by a step that had begun before."""
    for order in (one for one in ledgers.orders if one.get("held")):
        begin, end = order["held"]
        for id, story in tables.of("job").items():
            if story.first.peer_id == order.get("subscription") and begin + LONGEST_STEP < story.first.at < end:
                since = story.first.at - begin
                yield f"job {id} was made while subscription {story.first.peer_id} was paused, {since:.2f} s since"


def _removed(tables: Tables) -> Iterator[str]:
    """What retention took was a whole story that had ended."""
    jobs = tables.jobs_of()
    for id, story in tables.of("saga").items():
        if not story.is_removed:
            continue
        gone = story.changes[-1]
        if gone.old_status not in ENDS:
            yield f"saga {id} was removed while it was {gone.old_status}"
        event = tables.of("event").get(gone.parent_id or 0)
        if event is None or not event.is_removed:
            yield f"saga {id} was removed and its event was not"
        if any(not job.is_removed for job in jobs.get(id, ())):
            yield f"saga {id} was removed and a job of it was not"


def _as_the_tables_say(tables: Tables) -> Iterator[str]:
    """The history ends where the tables are: nobody went around it."""
    for what, rows in (("saga", tables.sagas), ("job", tables.jobs)):
        for row in rows:
            story = tables.of(what).get(row["id"])
            if story is None or story.last.new_status != row["status"]:
                yield f"{what} {row['id']} is {row['status']}, and its history says otherwise"
        kept = {id for id, story in tables.of(what).items() if not story.is_removed}
        yield from (f"{what} {id} is gone without a trace" for id in kept - {row["id"] for row in rows})
    yield from (f"the result of job {job['id']} was never taken in" for job in tables.jobs if job["applied_at"] is None)
    payloads = {row["id"]: row["payload"] for row in tables.events}
    for letter in tables.dead_letters:
        if letter["payload"] != payloads.get(letter["event_id"]):
            yield f"dead letter {letter['id']} does not say what its event said"
