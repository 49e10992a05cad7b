"""Bugs that were made elsewhere, put into the product from outside: each must be found, or the checks prove nothing.

Nothing of this is in the product, and nothing in the product asks for it: a process gets one when the tests that start
it say so in an environment variable, a test when it asks for `planted`.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

from tidings.courier import response, signing
from tidings.db.dialect import DIALECTS
from tidings.db.statements import load_statements
from tidings.decisions.advancing import Advance, JobResult, RetryPolicy, advance
from tidings.decisions.retrying import Backoff
from tidings.roles.archiver.operations import ArchiverOperations
from tidings.roles.cleaner import cleaner
from tidings.roles.orchestrator import applying, starting
from tidings.roles.orchestrator.operations import Subscription
from tidings.roles.router import router
from tidings.roles.router.operations import RouterOperations
from tidings.roles.verifier import calling
from tidings.roles.worker import endpoints, reporting, worker
from tidings.roles.worker.operations import LeasedJob


@dataclass(frozen=True)
class Plant:
    """`story` is the one in which it shows; `peers` made this mistake, as far as that is known.

    `told`: what the checker must say of it, whatever else it may say. `fire` is the tier in which it must be found in
    whole processes, where nobody arranges what is needed for it.
    """

    does: str
    story: str
    told: str
    apply: Callable[[ExitStack], None]
    peers: str = ""
    fire: str = "smoke"


def _attribute(owner: Any, name: str, value: Any) -> Callable[[ExitStack], None]:
    def apply(undo: ExitStack) -> None:
        before = owner.__dict__[name] if isinstance(owner, type) else getattr(owner, name)
        setattr(owner, name, value)
        undo.callback(setattr, owner, name, before)

    return apply


def _rewrite(role: str, statement: str, pattern: str, new: str) -> Callable[[ExitStack], None]:
    """Another text for a statement, in the words of every engine."""

    def apply(undo: ExitStack) -> None:
        for dialect in DIALECTS.values():
            statements: Any = load_statements(f"tidings.roles.{role}", dialect)
            before = statements[statement]
            text, count = re.subn(pattern, new, before.text)
            if not count:
                raise ValueError(f"{role}.{statement} has nothing like {pattern!r} on {dialect.name}")
            statements[statement] = replace(before, text=text)
            undo.callback(statements.__setitem__, statement, before)

    return apply


def _all(*parts: Callable[[ExitStack], None]) -> Callable[[ExitStack], None]:
    def apply(undo: ExitStack) -> None:
        for part in parts:
            part(undo)

    return apply


def _with_limit(change: int) -> Callable[[JobResult, RetryPolicy], Advance]:
    def decide(result: JobResult, policy: RetryPolicy) -> Advance:
        return advance(result, RetryPolicy(policy.max_retry_limit + change, policy.backoff))

    return decide


def _at_once(result: JobResult, policy: RetryPolicy) -> Advance:
    return advance(result._replace(retry_after=None), RetryPolicy(policy.max_retry_limit, Backoff(0.001, 0.001, 0)))


def _deaf(result: JobResult, policy: RetryPolicy) -> Advance:
    return advance(result._replace(retry_after=None), policy)


def _id_of_attempt(job: LeasedJob, *given: Any) -> Any:
    request = _REQUEST_OF(job, *given)
    headers = tuple((n, f"{v}{job.attempt_no}" if n == "webhook-id" else v) for n, v in request.headers)
    return request._replace(headers=headers)


async def _half_of_the_sagas(self: RouterOperations, rows: Sequence[tuple[int, int, str]]) -> int:
    await _INSERT_SAGAS(self, [row for row in rows if row[0] % 2])
    return len(rows)


async def _delete_first(self: ArchiverOperations, ids: Sequence[int]) -> None:
    await self._run("remove_tasks", ids=ids)


_REQUEST_OF = endpoints.request_of
_INSERT_SAGAS = RouterOperations.insert_sagas
_SAME = SimpleNamespace(randbits=lambda bits: 7, token_hex=lambda size: "7")
_SIGNED = signing._signed

# In place of a comparison with a token or a version: whatever it is, and of no other row than was meant.
WHICHEVER = "AND -1 <"

PLANTS = {
    "report-without-token": Plant(
        "a report is stored while the job is leased, whoever holds the lease",
        "zombie",
        "under its last lease was said",
        _rewrite("worker", "report", "AND lease_token =", WHICHEVER),
        "River, Convoy, Procrastinate",
        fire="zombies",
    ),
    "report-by-id": Plant(
        "a report is stored by the job's id alone",
        "zombie",
        "under its last lease was said",
        _rewrite("worker", "report", r"AND concat\(status, ''\) = 'Leased' AND lease_token =", WHICHEVER),
        "Oban",
        fire="zombies",
    ),
    "give-back-without-token": Plant(
        "a worker gives back a job that another one is sending",
        "zombie gives back",
        "was sent and given back",
        _rewrite("worker", "give_back", "AND lease_token =", WHICHEVER),
        "Convoy",
        fire="zombies",
    ),
    "one-token-for-all": Plant(
        "every lease has the same token",
        "zombie",
        "under a token that somebody may still have",
        _all(*(_attribute(module, "secrets", _SAME) for module in (worker, reporting, cleaner))),
    ),
    "expires-for-ever": Plant(
        "an expired lease is reset however often it was",
        "expiring",
        "lost its lease",
        _attribute(cleaner, "is_poisoned", lambda *_: False),
        "hindsight 2675, activepieces 15130",
    ),
    "ends-live-leases": Plant(
        "the cleaner's clock is ahead: it ends leases that have not expired",
        "live lease",
        "to whom nothing had happened",
        _rewrite("cleaner", "stale_leases", "lease_until <", "lease_until <>"),
        "Oban, by node clocks",
    ),
    "result-not-marked": Plant(
        "a result is taken in and not marked as such",
        "plain",
        "was never taken in",
        _rewrite("orchestrator", "mark_applied", "applied_at IS NULL", "applied_at = NULL"),
    ),
    "counted-twice": Plant(
        "a success counts as two attempts",
        "plain",
        "attempts and has",
        _rewrite("orchestrator", "complete_sagas", r"attempt_count \+ 1", "attempt_count + 2"),
    ),
    "buried-too-early": Plant(
        "a saga is given up one attempt before its limit",
        "plain",
        "was given up after",
        _attribute(applying, "advance", _with_limit(-1)),
    ),
    "buried-too-late": Plant(
        "a saga is tried once more than its limit",
        "plain",
        "allowed",
        _all(_attribute(applying, "advance", _with_limit(1)), _attribute(starting, "is_exhausted", lambda *_: False)),
        "Convoy 1833",
    ),
    "dead-letter-forgotten": Plant(
        "a saga is given up without a dead letter",
        "plain",
        "dead letters",
        _rewrite("orchestrator", "write_dead_letters", r"WHERE s\.id", "WHERE 1 = 0 AND s.id"),
    ),
    "any-answer-is-success": Plant(
        "whatever status comes back is taken for success",
        "plain",
        "its receiver said so",
        _attribute(response, "of_status", lambda status: None),
        "Outpost, below 400",
    ),
    "retries-at-once": Plant(
        "a failed delivery is tried again without a delay",
        "plain",
        "s after failure",
        _attribute(applying, "advance", _at_once),
    ),
    "deaf-to-retry-after": Plant(
        "Retry-After is not heard", "busy", "s after failure", _attribute(applying, "advance", _deaf), "Svix"
    ),
    "payload-rewritten": Plant(
        "the payload goes through the database's own notion of JSON",
        "plain",
        "got other bytes",
        _rewrite(
            "worker",
            "leased_jobs",
            r"e\.payload(::text AS payload)?",
            "replace(concat(e.payload), '  ', ' ') AS payload",
        ),
    ),
    "signature-of-other-bytes": Plant(
        "what is signed is not what is sent",
        "plain",
        "is not signed with",
        _attribute(signing, "_signed", lambda id, timestamp, body: _SIGNED(id, timestamp, body.strip() + b" ")),
    ),
    "new-id-for-each-attempt": Plant(
        "receivers can't know a retry by its webhook-id",
        "plain",
        "webhook ids",
        _attribute(worker, "request_of", _id_of_attempt),
    ),
    "holes-forgotten": Plant(
        "the router moves on to the highest id that it sees",
        "hole",
        "was never routed",
        _attribute(router, "gaps", lambda position, ids: []),
        "Eventuous 222, kamu-cli 1398, prooph 189",
    ),
    "sagas-lost-after-routing": Plant(
        "the cursor moves and some sagas are not written with it",
        "plain",
        "has no saga for",
        _attribute(RouterOperations, "insert_sagas", _half_of_the_sagas),
        "Svix, Convoy 660",
    ),
    "paused-is-not-held": Plant(
        "jobs are started for a paused subscription",
        "paused",
        "was paused",
        _attribute(Subscription, "may_be_sent_to", property(lambda self: self.active and self.verified)),
        fire="pauses",
    ),
    "task-result-without-version": Plant(
        "a late result ends a task that another worker runs",
        "task zombie",
        "had not done it",
        _all(
            *(
                _rewrite("task_worker", statement, "AND version =", WHICHEVER)
                for statement in ("succeed", "retry", "bury")
            )
        ),
        "Oban, Procrastinate",
        fire="tasks",
    ),
    "rescue-not-counted": Plant(
        "a rescue uses up no retry",
        "task zombie",
        "counts",
        _rewrite("rescuer", "rescue", r"retry_count \+ 1", "retry_count + 0"),
        "NexJob 143",
        fire="tasks",
    ),
    "rescues-the-living": Plant(
        "tasks are taken from workers that are well",
        "task alive",
        "to whom nothing had happened",
        _all(
            *(
                _rewrite("rescuer", statement, "updated_at <=", "updated_at >=")
                for statement in ("silent_tasks", "silent_tasks_of")
            )
        ),
        fire="tasks",
    ),
    "archive-deletes-first": Plant(
        "tasks are deleted, and the process dies before they are in the history",
        "task archived",
        "are nowhere",
        _attribute(ArchiverOperations, "archive_tasks", _delete_first),
        "Laravel ideas 1364",
        fire="tasks",
    ),
    "verified-whatever-it-says": Plant(
        "an endpoint is verified by any answer",
        "proving",
        "never answered rightly",
        _attribute(calling, "is_right_answer", lambda *_: True),
        fire="checks",
    ),
    "verdict-not-fenced": Plant(
        "a late verdict replaces the one that is there",
        "proving",
        "outcomes",
        _rewrite("verifier", "finish_check", "AND finished_at IS NULL", ""),
        fire="checks",
    ),
}


def plant(name: str) -> None:
    """For the rest of this process's life."""
    PLANTS[name].apply(ExitStack())


@contextmanager
def planted(name: str) -> Iterator[None]:
    """For the length of a block."""
    with ExitStack() as undo:
        PLANTS[name].apply(undo)
        yield
