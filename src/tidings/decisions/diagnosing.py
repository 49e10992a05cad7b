"""What `doctor` makes of what it found: each finding says what is so, whether that is right, and what to do."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

LARGEST_CLOCK_DIFFERENCE = 30.0
OLDEST_HOLE = 300.0
OLDEST_DUE_TASK = 300.0
_SHOWN = 6


class Health(StrEnum):
    RIGHT = "right"
    DOUBTFUL = "doubtful"
    WRONG = "wrong"


@dataclass(frozen=True)
class Finding:
    subject: str
    health: Health
    says: str
    remedy: str = ""


@dataclass(frozen=True)
class ServerSetting:
    """A setting of the server; `wanted` lists the right values, with bars between them."""

    name: str
    value: str
    wanted: str

    @property
    def is_right(self) -> bool:
        return self.value.lower() in self.wanted.lower().split("|")


@dataclass(frozen=True)
class GateFacts:
    """`was_made` is false for a gate that nobody ever opened or closed."""

    name: str
    is_open: bool
    reason: str
    was_made: bool


@dataclass(frozen=True)
class RouterFacts:
    """Where a router is; `lag` counts ids, so it is never less than the events that wait."""

    name: str
    event_domain: str
    position: int
    lag: int
    hole_ids: int
    oldest_hole_seconds: float
    knows_its_last_event: bool


@dataclass(frozen=True)
class OpenWriter:
    """A transaction that may still bring events; what this login is not shown of it is None."""

    pid: int | None
    open_seconds: float | None

    def __str__(self) -> str:
        process = "a prepared transaction" if self.pid is None else f"process {self.pid}"
        return process if self.open_seconds is None else f"{process}, open for {self.open_seconds:.0f} s"


def right(subject: str, says: str) -> Finding:
    return Finding(subject, Health.RIGHT, says)


def judge_settings(subject: str, settings: Sequence[ServerSetting], remedy: str) -> Finding:
    wrong = [setting for setting in settings if not setting.is_right]
    if not wrong:
        return right(subject, ", ".join(f"{setting.name} {setting.value}" for setting in settings))
    says = "; ".join(f"{s.name} is {s.value}, not {s.wanted.replace('|', ' or ')}" for s in wrong)
    return Finding(subject, Health.WRONG, says, remedy)


def judge_isolation(level: str) -> Finding:
    if level == "read committed":
        return right("isolation", level)
    return Finding(
        "isolation",
        Health.WRONG,
        f"{level}, not read committed",
        "Remove the setting of the login that overrides ours.",
    )


def judge_clock(difference_seconds: float) -> Finding:
    says = f"{abs(difference_seconds):.1f} s {'ahead of' if difference_seconds > 0 else 'behind'} the database"
    if abs(difference_seconds) <= LARGEST_CLOCK_DIFFERENCE:
        return right("clock", f"this machine is {says}")
    return Finding(
        "clock",
        Health.DOUBTFUL,
        f"this machine is {says}",
        "Leases and signatures use the database's clock, which receivers check; let NTP set both, this for logs.",
    )


def judge_migrations(missing: Sequence[tuple[int, str]], newest: int) -> Finding:
    if not missing:
        return right("schema version", f"{newest}, as this program needs")
    return Finding(
        "schema version", Health.WRONG, f"{len(missing)} steps of migrations are missing", "Run `tidings migrate`."
    )


def judge_schema(differences: Sequence[str]) -> Finding:
    if not differences:
        return right("tables and indexes", "as written")
    return Finding(
        "tables and indexes",
        Health.WRONG,
        listed(differences),
        "Somebody changed the schema by hand. Put it back; `tidings migrate --print` shows how each thing is made.",
    )


def judge_rights(missing: Sequence[str], excess: Sequence[str]) -> Finding:
    if not missing and not excess:
        return right("rights", "every role has what the map says and nothing else")
    says = [*(f"missing: {line}" for line in missing), *(f"too much: {line}" for line in excess)]
    return Finding("rights", Health.WRONG, listed(says), "Run `tidings migrate` as the owner; it puts them right.")


def judge_boundary(sharing: Sequence[str]) -> Finding:
    if not sharing:
        return right("boundary", "each role has a login of its own")
    return Finding(
        "boundary",
        Health.DOUBTFUL,
        f"{len(sharing)} roles share one login and only SET ROLE: that keeps mistakes out, but is no boundary",
        "Run `tidings migrate --roles=create` and set TIDINGS_DATABASE_URL_<ROLE> for each role.",
    )


def judge_gates(gates: Sequence[GateFacts], has_events: bool) -> Finding:
    """In an empty log, gates that nobody has touched yet are as they should be."""
    closed = [gate for gate in gates if not gate.is_open]
    if not closed:
        return right("gates", "open: " + ", ".join(gate.name for gate in gates))
    says = "closed: " + listed([_closed_gate(gate) for gate in closed])
    if not has_events and not any(gate.was_made for gate in gates):
        return Finding("gates", Health.RIGHT, says, "`tidings gates open --all` lets events through.")
    remedy = " and ".join(f"`tidings gates open {gate.name}`" for gate in closed[:_SHOWN])
    return Finding("gates", Health.DOUBTFUL, says, f"Nothing is lost, but nothing is routed there: {remedy}.")


def _closed_gate(gate: GateFacts) -> str:
    if not gate.was_made:
        return f"{gate.name} (never opened)"
    return f"{gate.name} ({gate.reason})" if gate.reason else gate.name


def judge_routers(routers: Sequence[RouterFacts], writers: Sequence[OpenWriter], has_events: bool) -> Finding:
    if not routers:
        start = "`tidings run router` makes the first one, when the gates are open."
        return Finding("routers", Health.DOUBTFUL if has_events else Health.RIGHT, "none yet", start)
    strangers = [router for router in routers if not router.knows_its_last_event]
    waiting = [router for router in routers if router.oldest_hole_seconds > OLDEST_HOLE]
    says = listed([_router_line(router) for router in routers])
    if strangers:
        names = ", ".join(router.name for router in strangers)
        remedy = (
            f"The last event that was routed is missing or another one; {names} holds. If the log is the right one:"
            f" `tidings routers confirm {strangers[0].name}`."
        )
        return Finding("routers", Health.DOUBTFUL, says, remedy)
    if waiting:
        return Finding("routers", Health.DOUBTFUL, says, _what_holes_wait_for(writers))
    return right("routers", says)


def _router_line(router: RouterFacts) -> str:
    place = f"{router.name} ({router.event_domain}) at {router.position}, at most {router.lag} behind"
    if not router.hole_ids:
        return place
    return f"{place}, {router.hole_ids} missing ids, the oldest for {router.oldest_hole_seconds:.0f} s"


def _what_holes_wait_for(writers: Sequence[OpenWriter]) -> str:
    if writers:
        return f"An open transaction may still bring those events; end it: {listed([str(one) for one in writers])}."
    return "An open transaction of a producer may still bring those events, or no router runs to close the holes."


def judge_route_dead_letters(unresolved: int, newest_error: str, looked_at: int) -> Finding:
    if not unresolved:
        return right("routing dead letters", "none that is unresolved")
    return Finding(
        "routing dead letters",
        Health.DOUBTFUL,
        f"{unresolved} unresolved among the newest {looked_at}; the newest: {newest_error}",
        "Look with `tidings route-dead-letters list`.",
    )


@dataclass(frozen=True)
class TaskFacts:
    """Tasks of one type that are due and not claimed, the first of them for so long; and who could handle them."""

    biz_type: str
    due: int
    oldest_seconds: float
    process: str
    running: int


def judge_tasks(tasks: Sequence[TaskFacts]) -> Finding:
    """Which types a worker handles only it knows: what waits for long is handled by none, or by too few."""
    due = [one for one in tasks if one.due]
    unhandled = [one for one in due if not one.running]
    late = [one for one in due if one.oldest_seconds > OLDEST_DUE_TASK]
    if unhandled:
        process = unhandled[0].process
        start = f"Run `tidings run {process}`; a task-worker with `--app` and the module that has their handlers."
        return Finding("tasks", Health.DOUBTFUL, f"no {process} runs; {_waiting(unhandled)}", start)
    if late:
        return Finding(
            "tasks",
            Health.DOUBTFUL,
            _waiting(late),
            "No running worker handles them, or too few do: compare `--app` of the workers, or run more of them.",
        )
    return right("tasks", _waiting(due) if due else "none waits")


def _waiting(tasks: Sequence[TaskFacts]) -> str:
    return listed([f"{one.due} of type {one.biz_type} wait, the first for {one.oldest_seconds:.0f} s" for one in tasks])


def listed(lines: Sequence[str]) -> str:
    """The first few of many, so that one damaged table does not fill the screen."""
    more = f"; and {len(lines) - _SHOWN} more" if len(lines) > _SHOWN else ""
    return "; ".join(lines[:_SHOWN]) + more


def is_well(findings: Sequence[Finding]) -> bool:
    return all(finding.health is not Health.WRONG for finding in findings)
