"""Of calls that somebody asked for: each has one outcome, and nobody is verified who did not answer its challenge."""

from collections import Counter, defaultdict
from collections.abc import Iterator

from tests.chaos.checker.ledgers import Ledgers, Request
from tests.chaos.checker.requests import check_signature
from tests.chaos.checker.tables import Change, Row, Story, Tables
from tests.chaos.checker.tasks import RUNNING, TERMINAL

PREFIX = {"verification": "vrf", "test": "tst"}
# So much of a challenge stands in the webhook id.
LENGTH = 26
PASSED, OUTDATED = "passed", "outdated"
# A worker that stood still hears no answer in time.
STOOD_STILL = ("freeze", "stall")


def check_calls(ledgers: Ledgers, tables: Tables) -> Iterator[str]:
    yield from _asked(ledgers, tables)
    yield from _strangers(ledgers, tables)
    tasks, ids = tables.of("task"), tables.task_ids()
    answers: dict[str, list[Request]] = defaultdict(list)
    for request in ledgers.calls:
        answers[request.message].append(request)
    for key, row in tables.calls().items():
        story, task = tables.of("check").get(row["id"], Story()), tasks.get(ids.get(key, 0), Story())
        said = answers[_message_of(row)]
        yield from (f"check {row['id']} {wrong}" for wrong in _check(ledgers, tables, row, said, story, task))
    yield from _verified(ledgers, tables)


def _message_of(check: Row) -> str:
    return f"{PREFIX[check['kind']]}_{check['challenge'][:LENGTH]}"


def _asked(ledgers: Ledgers, tables: Tables) -> Iterator[str]:
    """What was asked for is there, and nothing else; each was written down for the audit."""
    orders = [order for order in ledgers.orders if order.get("order") == "check"]
    asked = {check for order in orders for check in order["checks"]}
    doubtful = {order["subscription"] for order in orders if order.get("in_doubt")}
    there = {row["id"]: row["subscription_id"] for row in tables.checks}
    yield from (f"check {id} was asked for and is not there" for id in asked - there.keys())
    for id, subscription in there.items():
        if id not in asked and subscription not in doubtful:
            yield f"check {id} is there and nobody asked for it"
    audited = sum(row["action"].endswith("_asked") for row in tables.audit)
    if audited != len(there):
        yield f"{len(there)} checks are there, and the audit log has {audited}"


def _strangers(ledgers: Ledgers, tables: Tables) -> Iterator[str]:
    paths = {_message_of(row): ledgers.subscriptions[row["subscription_id"]].path for row in tables.checks}
    for request in ledgers.calls:
        if paths.get(request.message) != request.path:
            yield f"nobody asked for the call of {request.path} with {request.message}"


def _check(ledgers: Ledgers, tables: Tables, row: Row, said: list[Request], story: Story, task: Story) -> Iterator[str]:
    subscription = ledgers.subscriptions[row["subscription_id"]]
    outcomes = [change for change in story.changes if change.op == "U"]
    if len(outcomes) > 1:
        yield f"got {len(outcomes)} outcomes: {[one.new_status for one in outcomes]}"
    if not outcomes and (not task.changes or task.last.new_status != TERMINAL):
        yield "has no outcome"
    claims = sum(move.new_status == RUNNING for move in task.moves)
    if len(said) > claims:
        yield f"was called {len(said)} times, and claimed {claims} times"
    right = [one for one in said if one.went_well and (row["kind"] == "test" or subscription.kind == "agrees")]
    if row["outcome"] == PASSED and not right:
        yield f"passed, and {subscription.path} never answered rightly"
    # Of a test it may also be said that the answer came too late, as of any delivery.
    failures = ("failed", "blocked") if row["kind"] == "test" else ("failed", "blocked", "timeout")
    if row["outcome"] in failures and right and not _stood_still(ledgers, right[0], story.last):
        yield f"is {row['outcome']}, and {subscription.path} had answered rightly"
    if row["outcome"] == OUTDATED and not any(_is_newer(other, row) for other in tables.checks):
        yield "is outdated, and nothing came after it"
    for request in said:
        yield from check_signature(request, subscription)


def _stood_still(ledgers: Ledgers, answered: Request, told: Change) -> bool:
    return any(one.kind in STOOD_STILL and one.at <= told.at and answered.at <= one.until for one in ledgers.broken)


def _is_newer(other: Row, row: Row) -> bool:
    return bool(other["id"] > row["id"] and all(other[name] == row[name] for name in ("subscription_id", "kind")))


def _verified(ledgers: Ledgers, tables: Tables) -> Iterator[str]:
    """Who has to prove it is verified if one of its checks passed, and only then; that is told once."""
    passed = {
        row["subscription_id"] for row in tables.checks if (row["kind"], row["outcome"]) == ("verification", PASSED)
    }
    told = Counter(row["subject"] for row in tables.audit if row["action"] == "subscription.verified")
    must = {one.id for one in ledgers.subscriptions.values() if one.kind in ("agrees", "declines")}
    for id in must & (tables.verified - passed):
        yield f"subscription {id} is verified, and no check of it passed"
    for id in must & (passed - tables.verified):
        yield f"subscription {id} is not verified, and a check of it passed"
    for id in must:
        if told[f"subscription:{id}"] != (id in tables.verified):
            yield f"the audit log says {told[f'subscription:{id}']} times that subscription {id} was verified"
