"""What a person may write into routes, gates and routers; everything else is refused before anything is stored."""

import re

from tidings.decisions.matching import ANY, is_pattern
from tidings.decisions.texts import LONGEST_NAME, LONGEST_REASON, RefusingAs, one_line, refuse, visible_name
from tidings.errors import InputRefused, RouteRefused
from tidings.model.route import ROUTING_GATE, Route, RouteTarget, router_gate
from tidings.model.task import LONGEST_TYPE

LONGEST_ACTOR = 200
_WORKER = re.compile(r"[a-z0-9_-]{1,60}")
# Everything visible but the star.
_DOMAIN = re.compile(rf"[!-)+-~]{{1,{LONGEST_NAME}}}")


def check_route(route: Route) -> None:
    with RefusingAs(RouteRefused):
        for field in ("event_type", "event_domain", "event_stream"):
            _check_pattern(field, getattr(route, field), may_be_empty=field == "event_stream")
        _check_task_type(route)


def _check_pattern(field: str, text: str, *, may_be_empty: bool) -> None:
    if not text and not may_be_empty:
        refuse(field, "is empty", f"Give a name or a pattern; {ANY} stands for all.")
    if not is_pattern(visible_name(text, field, LONGEST_NAME, may_be_empty=True)):
        what = f"{text!r} is no pattern: `*` stands alone, or as the last segment"
        refuse(field, what, "For example order.paid, order.* or *.")


def _check_task_type(route: Route) -> None:
    field = "task_biz_type"
    if route.target is RouteTarget.WEBHOOK and route.task_biz_type:
        raise RouteRefused("A route to webhooks has no task type.", "Leave task_biz_type out.", field=field)
    if route.target is RouteTarget.TASK and not route.task_biz_type:
        raise RouteRefused("A route to tasks needs the type of the task.", "Give task_biz_type.", field=field)
    visible_name(route.task_biz_type, field, LONGEST_TYPE, may_be_empty=True)


def check_worker_name(name: str) -> None:
    if not _WORKER.fullmatch(name):
        raise InputRefused(
            f"{name!r} is no name for a router.",
            "Use 1 to 60 of: small letters, digits, _ and -.",
            field="worker_name",
        )


def check_router_domain(domain: str) -> None:
    if domain != ANY and not _DOMAIN.fullmatch(domain):
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
    one_line(reason, "reason", LONGEST_REASON)


def check_actor(actor: str) -> None:
    if not actor:
        raise InputRefused("It is not said who does this.", field="actor")
    one_line(actor, "actor", LONGEST_ACTOR)
