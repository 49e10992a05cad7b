"""The checker itself: of a small good story it says nothing, and of each damage to it, what is wrong."""

import datetime
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from standardwebhooks import Webhook

from tests.chaos.checker import UNPLANNED, compare
from tests.chaos.checker.ledgers import Broken, Ledgers, Request, Subscription
from tests.chaos.checker.sometimes import count_sometimes
from tests.chaos.checker.tables import Change, Story, Tables
from tests.chaos.checker.tasks import TIMED_OUT, check_tasks
from tidings.telemetry.log_lines import WORDING

SECRET = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"
WORKER = "worker:host:11:aa"
BODY = '{"a":  1}'
CHALLENGE = "a-challenge-that-is-longer-than-an-id"
CALL = "vrf_a-challenge-that-is-longer"


def request(at: float, attempt: int = 1, says: int | None = 200, **more: Any) -> Request:
    moment = datetime.datetime.fromtimestamp(int(at), datetime.UTC)
    given = {"path": "/a", "message": "msg_1", "correlation_id": "c1", "event_type": "a", "body": BODY, **more}
    signature = Webhook(SECRET).sign(given["message"], moment, BODY)
    return Request(at=at, timestamp=str(int(at)), signature=signature, attempt=attempt, says=says, **given)


def run(at: float, what: str, pid: int = 11) -> dict[str, Any]:
    return {"task": 9, "what": what, "at": at, "pid": pid}


@dataclass
class Case:
    """One event that failed once, was taken over once, and was delivered; one task that was rescued once; one endpoint
    that proved itself."""

    ledgers: Ledgers = field(default_factory=lambda: Ledgers(Path("/nowhere")))
    changes: list[Change] = field(default_factory=list)
    numbers: "itertools.count[int]" = field(default_factory=itertools.count)
    check: dict[str, Any] = field(default_factory=dict)
    verified: set[int] = field(default_factory=lambda: {5, 6})
    audited: list[str] = field(default_factory=lambda: ["subscription.verification_asked", "subscription.verified"])

    def __post_init__(self) -> None:
        ledgers = self.ledgers
        ledgers.limits = {"max_lease_resets": 1, "base_delay": 1, "max_delay": 8, "busy_seconds": 1}
        ledgers.events = {"c1": {"event_type": "a", "payload": BODY}}
        ledgers.subscriptions = {5: Subscription(5, "/a", "well", "a", 3, False, ((0.0, SECRET),))}
        ledgers.subscriptions[6] = Subscription(6, "/p", "agrees", "nobody.wants", 3, False, ((0.0, SECRET),))
        ledgers.orders = [{"order": "check", "subscription": 6, "checks": [3]}]
        ledgers.calls = [request(42, 0, path="/p", message=CALL, correlation_id="", event_type="")]
        ledgers.requests = [request(11, says=503), request(21, 2, 200), request(31, 2, 201)]
        ledgers.broken = [Broken("kill", 22, 25, 11)]
        ledgers.tasks = {"k": {}}
        ledgers.runs = [run(21.5, "begun"), run(23.2, "begun"), run(23.8, "done")]
        self._deliver()
        self._task()
        self._prove()

    def _deliver(self) -> None:
        self.add("event", 1, "I", 1, note="c1")
        self.add("saga", 1, "I", 7, None, "Pending", parent_id=1, peer_id=5, number=0, place=0)
        for at, attempt, token in ((10, 1, 100), (20, 2, 200)):
            saga = ("Pending" if attempt == 1 else "PendingRetry", "InProgress")
            self.add("job", at, "I", 70 + attempt, None, "Pending", number=0, place=attempt, new_token=token)
            self.add("saga", at, "U", 7, *saga, number=attempt - 1, place=0, until_at=at - 1)
            self._lease(at + 0.5, 70 + attempt, attempt, token, 0)
            if attempt == 1:
                self._finish(12, 71, attempt, token + 1, "Failed", 503, 0)
                self.add("saga", 13, "U", 7, "InProgress", "PendingRetry", number=1, place=0)
        self.job(26, 72, 2, "Leased", "Pending", 201, 202, number=1)
        self._lease(30, 72, 2, 202, 1)
        self._finish(32, 72, 2, 203, "Completed", 201, 1)
        self.add("saga", 33, "U", 7, "InProgress", "Completed", number=2, place=0)

    def _lease(self, at: float, id: int, attempt: int, token: int, resets: int) -> None:
        self.job(at, id, attempt, "Pending", "Leased", token, token + 1, number=resets)

    def _finish(self, at: float, id: int, attempt: int, token: int, status: str, answer: int, resets: int) -> None:
        self.job(at, id, attempt, "Leased", status, token, token, number=resets, answer=answer)

    def job(self, at: float, id: int, attempt: int, old: str, new: str, *tokens: int, **more: Any) -> None:
        old_token, new_token = tokens
        given = {"place": attempt, "worker": WORKER, "old_token": old_token, "new_token": new_token, **more}
        self.add("job", at, "U", id, old, new, **given)

    def _task(self) -> None:
        self.add("task", 1, "I", 9, None, "0", new_token=0, number=0, place=3)
        moves = [("0", "1", 0, ""), ("1", "3", 1, TIMED_OUT), ("3", "1", 1, ""), ("1", "2", 1, "OK")]
        for number, (old, new, retries, note) in enumerate(moves):
            given = {"number": retries, "place": 3, "worker": WORKER, "note": note}
            self.add("task", 21 + number, "U", 9, old, new, old_token=number, new_token=number + 1, **given)

    def _prove(self) -> None:
        self.check = {
            "id": 3,
            "subscription_id": 6,
            "kind": "verification",
            "challenge": CHALLENGE,
            "outcome": "passed",
        }
        self.add("check", 41, "I", 3, peer_id=6)
        self.add("task", 41, "I", 10, None, "0", new_token=0, number=0, place=1)
        given = {"number": 0, "place": 1, "worker": "verifier:host:12:bb"}
        self.add("task", 41.5, "U", 10, "0", "1", old_token=0, new_token=1, **given)
        self.add("check", 42.5, "U", 3, None, "passed", peer_id=6)
        self.add("task", 43, "U", 10, "1", "2", old_token=1, new_token=2, **given)

    def add(self, what: str, at: float, op: str, id: int, old: Any = None, new: Any = None, **more: Any) -> None:
        ids = {"job": {"parent_id": 7, "peer_id": 5}, "saga": {"parent_id": 1, "peer_id": 5}}.get(what, {})
        empty = dict.fromkeys(Change._fields)
        given = {**empty, **ids, **more, "what": what, "op": op, "row_id": id, "old_status": old, "new_status": new}
        self.changes.append(Change(**{**given, "id": next(self.numbers), "at": float(at)}))

    def change(self, where: Callable[[Change], bool], **values: Any) -> None:
        assert any(map(where, self.changes))
        self.changes = [one._replace(**values) if where(one) else one for one in self.changes]

    def drop(self, where: Callable[[Change], bool]) -> None:
        assert any(map(where, self.changes))
        self.changes = [one for one in self.changes if not where(one)]

    def tables(self) -> Tables:
        stories: dict[str, dict[int, Story]] = {}
        for change in self.changes:
            stories.setdefault(change.what, {}).setdefault(change.row_id, Story()).changes.append(change)
        row = {"id": 1, "event_type": "a", "correlation_id": "c1", "payload": BODY}
        sagas = [{"id": id, "status": story.last.new_status} for id, story in stories.get("saga", {}).items()]
        jobs = [{"id": i, "status": s.last.new_status, "applied_at": 1} for i, s in stories.get("job", {}).items()]
        tasks = [{"id": 9, "biz_key": "k"}, {"id": 10, "biz_key": f"6:{CHALLENGE}"}]
        audit = [{"actor": "somebody", "action": action, "subject": "subscription:6"} for action in self.audited]
        routed = [{"event_id": 1}]
        checks = [self.check] if self.check else []
        return Tables([row], sagas, jobs, [], tasks, [], audit, routed, stories, checks, self.verified)

    def problems(self) -> list[str]:
        return compare(self.ledgers, self.tables()).problems


def test_a_good_story_has_nothing_wrong_in_it() -> None:
    assert Case().problems() == []


def test_a_task_that_was_archived_and_removed_has_nothing_wrong_in_it() -> None:
    case = Case()
    archived(case)
    case.add("archived", 50, "D", 9, "2", None, note="k")
    tables = case.tables()
    del tables.tasks[0]
    assert [*check_tasks(case.ledgers, tables)] == []


@pytest.mark.parametrize(("kind", "is_wrong"), [("well", True), ("drips", False)])
def test_an_answer_that_was_half_heard_was_not_taken_in_where_that_can_be(kind: str, is_wrong: bool) -> None:
    case = Case()
    case.ledgers.subscriptions[5] = replace(case.ledgers.subscriptions[5], kind=kind)
    case.ledgers.requests[0] = request(11, says=200)
    case.change(is_job(71, "Failed"), answer=200, note="timeout")
    assert any("not taken in" in problem for problem in case.problems()) is is_wrong


@pytest.mark.parametrize(("back", "kept"), [(31.5, 1), (30.5, 0), (None, 0)])
def test_an_answer_that_came_while_the_server_was_away_was_kept(back: float | None, kept: int) -> None:
    """It was leased at 30, asked for at 31, and reported at 32."""
    case = Case()
    case.ledgers.broken = [Broken("database", 30.2, 40, back=back)]
    assert count_sometimes(case.ledgers, case.tables())["report kept while the database was away"] == kept


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("Traceback (most recent call last):", "in a log: Traceback"),
        *((f'{{"event": "… {words} …"}}', "in a log: ") for words in UNPLANNED),
        ('{"event": "job sent", "payload": "canary-1-7"}', "a log tells what it must not"),
        (f'{{"event": "subscription made", "secret": "{SECRET}"}}', "a log tells what it must not"),
        ('{"event": "task failed", "error": "Traceback (most recent call last)"}', ""),
    ],
)
def test_a_log_tells_no_secret_no_payload_and_nothing_that_nobody_planned_for(
    line: str, found: str, tmp_path: Path
) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "worker-1.log").write_text(f"{line}\n", encoding="utf-8")
    problems = Case(Ledgers(tmp_path)).problems()
    assert [problem.startswith(found) for problem in problems] == [True] * bool(found)


@pytest.mark.parametrize("words", UNPLANNED)
def test_the_product_says_in_these_words_what_nobody_planned_for(words: str) -> None:
    assert any(words in said for _, said in WORDING.values())


def is_job(id: int, new: str) -> Callable[[Change], bool]:
    return lambda one: (one.what, one.row_id, one.new_status) == ("job", id, new)


def is_saga(new: str) -> Callable[[Change], bool]:
    return lambda one: (one.what, one.new_status) == ("saga", new)


def without_reason(case: Case) -> None:
    case.ledgers.broken = [Broken("kill", 22, 25, 12)]


def sent_too_often(case: Case) -> None:
    case.ledgers.requests.append(request(31.5, 2, 202))


def other_bytes(case: Case) -> None:
    case.ledgers.requests[0] = replace(case.ledgers.requests[0], body='{"a": 1}')


def phantom(case: Case) -> None:
    case.ledgers.requests.append(request(40, correlation_id="c2"))


def rolled_back(case: Case) -> None:
    case.ledgers.rolled_back = case.ledgers.events
    case.ledgers.events = {}


def second_saga(case: Case) -> None:
    case.add("saga", 50, "I", 8, None, "Completed", number=0, place=0)


def unasked_generation(case: Case) -> None:
    case.add("saga", 50, "I", 8, None, "Pending", number=0, place=1)


def ended_twice(case: Case) -> None:
    case.add("saga", 50, "U", 7, "InProgress", "Completed", number=2, place=0)


def written_after_the_end(case: Case) -> None:
    case.add("saga", 50, "U", 7, "Completed", "Completed", number=2, place=0)


def two_active(case: Case) -> None:
    case.add("job", 32.5, "I", 73, None, "Pending", place=3, number=0, new_token=1)
    case.add("job", 32.6, "I", 74, None, "Pending", place=4, number=0, new_token=2)


def too_early(case: Case) -> None:
    case.ledgers.broken = []
    case.ledgers.requests[1] = request(11.5, 2, 200)


def paused(case: Case) -> None:
    case.ledgers.orders = [{"order": "pause", "subscription": 5, "held": [15, 25]}]


def archived(case: Case, **other: Any) -> None:
    """As it should be, but for what is said."""
    case.add("task", 40, "D", 9, "2", None, old_token=4)
    given = {"new_token": 4, "number": 1, "note": "k", **other}
    case.add("archived", 40, "I", 9, None, given.pop("status", "2"), **given)


def archived_twice(case: Case) -> None:
    archived(case)
    case.add("archived", 41, "I", 9, None, "2", new_token=4, number=1, note="k")


def archived_and_kept(case: Case) -> None:
    case.add("archived", 40, "I", 9, None, "2", new_token=4, number=1, note="k")


def stale_timeout(case: Case) -> None:
    """It is leased at 30.5, asked for at 31, and 1.2 s may pass."""
    case.ledgers.limits = {**case.ledgers.limits, "timeout": 1.2}
    case.change(lambda one: is_job(72, "Leased")(one) and one.at == 30, at=30.5)
    case.change(is_job(72, "Completed"), new_status="Failed", answer=None, note="timeout", at=31.5)


def failed_too_soon(case: Case) -> None:
    case.ledgers.limits = {**case.ledgers.limits, "handler_seconds": 0.6}
    case.ledgers.tasks["k"] = {"biz_type": "SLOW"}
    case.change(lambda one: one.note == TIMED_OUT, note="Timed out", at=21.5)


def judged_twice(case: Case) -> None:
    case.add("check", 44, "U", 3, "passed", "failed", peer_id=6)


def without_outcome(case: Case) -> None:
    case.drop(lambda one: one.what == "check" and one.op == "U")
    case.check["outcome"] = None


def has_failed(case: Case) -> None:
    case.change(lambda one: one.what == "check" and one.op == "U", new_status="failed")
    case.check["outcome"] = "failed"


def given_up(case: Case) -> None:
    case.change(lambda one: one.row_id == 10 and one.new_status == "2", new_status="3", note="Timed out")


def declines(case: Case) -> None:
    case.ledgers.subscriptions[6] = replace(case.ledgers.subscriptions[6], kind="declines")


def called_twice(case: Case) -> None:
    case.ledgers.calls += case.ledgers.calls


def signed_by_another(case: Case) -> None:
    case.ledgers.calls[0] = replace(case.ledgers.calls[0], body="{}")


DAMAGES: dict[str, tuple[Callable[[Case], object], str]] = {
    "lost": (lambda case: case.ledgers.events.update(c3={"event_type": "a", "payload": ""}), "committed and is not"),
    "rolled back": (rolled_back, "was rolled back"),
    "changed": (lambda case: case.ledgers.events["c1"].update(payload="{}"), "not what its producer wrote"),
    "not wanted": (lambda case: case.ledgers.events["c1"].update(event_type="b"), "nobody asked for"),
    "no saga": (lambda case: case.drop(lambda one: one.what in ("saga", "job")), "has no saga"),
    "second saga": (second_saga, "has 2 sagas"),
    "unasked generation": (unasked_generation, "nobody asked for"),
    "not ended": (lambda case: case.drop(is_saga("Completed")), "ended 0 times"),
    "ended twice": (ended_twice, "ended 2 times"),
    "written after the end": (written_after_the_end, "written to after its end"),
    "without dead letter": (
        lambda case: case.change(is_saga("Completed"), new_status="DeadLettered"),
        "0 dead letters",
    ),
    "skipped a number": (lambda case: case.change(lambda one: one.row_id == 72, place=3), "has attempts [1, 3]"),
    "counted wrongly": (lambda case: case.change(is_saga("Completed"), number=3), "counts 3 attempts"),
    "two active": (two_active, "active jobs"),
    "same token": (lambda case: case.change(is_job(72, "Pending"), new_token=201), "somebody may still have"),
    "illegal move": (lambda case: case.change(is_job(71, "Failed"), old_status="Pending"), "moved Pending → Failed"),
    "too many resets": (lambda case: case.change(is_job(72, "Completed"), number=3), "lost its lease 3 times"),
    "stale report": (lambda case: case.change(is_job(72, "Completed"), answer=200), "says 200; under its last lease"),
    "stale timeout": (stale_timeout, "under its last lease was said nothing in 1.00 s"),
    "without reason": (without_reason, "to whom nothing had happened"),
    "sent too often": (sent_too_often, "was sent 3 times, 2 are explained"),
    "other bytes": (other_bytes, "got other bytes"),
    "phantom": (phantom, "nobody asked for"),
    "too early": (too_early, "not 1"),
    "due too early": (lambda case: case.change(lambda one: one.until_at == 19, until_at=13.5), "not 1 s"),
    "while paused": (paused, "was paused"),
    "task lost": (lambda case: case.ledgers.tasks.update(z={}), "are nowhere"),
    "task ran too often": (lambda case: case.ledgers.runs.append(run(23.5, "begun")), "ran 3 times"),
    "task done by another": (
        lambda case: case.ledgers.runs.__setitem__(2, run(23.8, "done", 12)),
        "had not done it",
    ),
    "task failed too soon": (failed_too_soon, "failed after 0.50 s"),
    "task left nothing": (lambda case: case.add("task", 40, "D", 9, "2"), "did not come into the history"),
    "task left too early": (lambda case: case.add("task", 40, "D", 9, "1"), "left the queue in status 1"),
    "task archived otherwise": (lambda case: archived(case, status="4"), "is in the history as 4"),
    "task archived from before": (lambda case: archived(case, new_token=3), "of version 3"),
    "task archived twice": (archived_twice, "came into the history 2 times"),
    "task in both": (archived_and_kept, "did not leave the queue"),
    "check not there": (lambda case: case.check.clear(), "was asked for and is not there"),
    "check not asked for": (lambda case: case.ledgers.orders.clear(), "nobody asked for it"),
    "check not audited": (lambda case: case.audited.pop(0), "1 checks are there, and the audit log has 0"),
    "call not asked for": (lambda case: case.check.update(challenge="another"), "nobody asked for the call of /p"),
    "two outcomes": (judged_twice, "got 2 outcomes"),
    "no outcome": (without_outcome, "has no outcome"),
    "outdated by nothing": (lambda case: case.check.update(outcome="outdated"), "nothing came after it"),
    "right answer not heard": (has_failed, "had answered rightly"),
    "wrong answer": (declines, "/p never answered rightly"),
    "no answer": (lambda case: case.ledgers.calls.clear(), "/p never answered rightly"),
    "called twice": (called_twice, "was called 2 times, and claimed 1 times"),
    "call wrongly signed": (signed_by_another, "is not signed with"),
    "call given up without reason": (given_up, "to whom nothing had happened"),
    "verified for nothing": (lambda case: case.check.update(kind="test"), "no check of it passed"),
    "passed in vain": (lambda case: case.verified.remove(6), "is not verified, and a check of it passed"),
    "verified in silence": (lambda case: case.audited.pop(), "says 0 times that subscription 6 was verified"),
    "order not audited": (
        lambda case: case.ledgers.orders.append({"order": "pause", "audited": ["subscription.paused"]}),
        "has 0 × subscription.paused, and 1 were carried out",
    ),
    "task never done": (lambda case: case.ledgers.runs.pop(), "no handler has done it"),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damage_is_found(name: str) -> None:
    damage, expected = DAMAGES[name]
    case = Case()
    damage(case)
    assert any(expected in problem for problem in case.problems()), case.problems()
