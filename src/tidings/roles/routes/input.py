"""What a person may write into routes, gates and routers; everything else is refused before anything is stored."""

import re

from tidings.decisions.matching import ANY, is_pattern
from tidings.errors import InputRefused, RouteRefused
from tidings.model.route import ROUTING_GATE, Route, RouteTarget, router_gate

LONGEST_PATTERN, LONGEST_TASK_TYPE, LONGEST_REASON, LONGEST_ACTOR = 100, 50, 500, 200
_VISIBLE = re.compile(r"[!-~]*")
_WORKER = re.compile(r"[a-z0-9_-]{1,60}")


def check_route(route: Route) -> None:
    for field in ("event_type", "event_domain", "event_stream"):
        _check_pattern(field, getattr(route, field), may_be_empty=field == "event_stream")
    _check_task_type(route)


def _check_pattern(field: str, text: str, *, may_be_empty: bool) -> None:
    if not text and not may_be_empty:
        raise RouteRefused(f"{field} is empty.", f"Give a name or a pattern; {ANY} stands for all.", field=field)
    _check_length_and_signs(field, text, LONGEST_PATTERN)
    if not is_pattern(text):
        raise RouteRefused(
            f"{field} {text!r} is no pattern: `*` stands alone, or as the last segment.",
            "For example order.paid, order.* or *.",
            field=field,
        )


def _check_task_type(route: Route) -> None:
    field = "task_biz_type"
    if route.target is RouteTarget.WEBHOOK and route.task_biz_type:
        raise RouteRefused("A route to webhooks has no task type.", "Leave task_biz_type out.", field=field)
    if route.target is RouteTarget.TASK and not route.task_biz_type:
        raise RouteRefused("A route to tasks needs the type of the task.", "Give task_biz_type.", field=field)
    _check_length_and_signs(field, route.task_biz_type, LONGEST_TASK_TYPE)


def _check_length_and_signs(field: str, text: str, longest: int) -> None:
    if len(text) > longest:
        raise RouteRefused(f"{field} has {len(text)} characters; {longest} are allowed.", field=field)
    if not _VISIBLE.fullmatch(text):
        raise RouteRefused(
            f"{field} {text!r} has other characters than visible ASCII.", "Leave spaces and the like out.", field=field
        )


def check_worker_name(name: str) -> None:
    if not _WORKER.fullmatch(name):
        raise InputRefused(
            f"{name!r} is no name for a router.",
            "Use 1 to 60 of: small letters, digits, _ and -.",
            field="worker_name",
        )


def check_router_domain(domain: str) -> None:
    if domain != ANY and (not domain or ANY in domain or len(domain) > 100 or not _VISIBLE.fullmatch(domain)):
        raise InputRefused(
            f"{domain!r} is no domain for a router.",
            "Give one domain by its name, or * for every domain that no other router has.",
            field="event_domain",
        )


def check_gate_name(name: str) -> None:
    prefix = router_gate("")
    if name != ROUTING_GATE and not (name.startswith(prefix) and _WORKER.fullmatch(name.removeprefix(prefix))):
        raise InputRefused(
            f"There is no gate {name!r}.",
            f"The gates are {ROUTING_GATE}, for all routers, and {router_gate('NAME')} for each of them.",
            field="name",
        )


def check_reason(reason: str, *, needed: bool = False) -> None:
    if needed and not reason.strip():
        raise InputRefused("There is no reason given.", "Say why, for those who read the audit log.", field="reason")
    _check_line("reason", reason, LONGEST_REASON)


def check_actor(actor: str) -> None:
    if not actor:
        raise InputRefused("It is not said who does this.", field="actor")
    _check_line("actor", actor, LONGEST_ACTOR)


def _check_line(field: str, text: str, longest: int) -> None:
    if len(text) > longest:
        raise InputRefused(f"{field} has {len(text)} characters; {longest} are allowed.", field=field)
    # A lone surrogate is not printable either, and no database takes it.
    if not text.isprintable():
        raise InputRefused(f"{field} has characters that can't be printed.", "Write it in one line.", field=field)
