"""Where matching events go, and how one routing decision ended (seed 004)."""

import hashlib
from collections.abc import Mapping
from dataclasses import astuple, dataclass
from enum import StrEnum
from typing import Any

ROUTING_GATE = "routing"
DEFAULT_ROUTER = "default"
EVERY_DOMAIN = "*"


def router_gate(worker_name: str) -> str:
    """The gate of one router alone, beside the master gate."""
    return f"router:{worker_name}"


class RouteTarget(StrEnum):
    WEBHOOK = "webhook"
    TASK = "task"


class RouteAttemptStatus(StrEnum):
    SENT = "sent"
    DRY_RUN = "dry_run"
    DISABLED = "disabled"
    SKIPPED = "skipped"
    FAILED = "failed"


@dataclass(frozen=True)
class Route:
    """Patterns of type, domain and stream, and where what matches goes."""

    id: int
    event_domain: str
    event_type: str
    event_stream: str
    target: RouteTarget
    task_biz_type: str = ""
    enabled: bool = True
    dry_run: bool = False

    @property
    def version(self) -> str:
        """Another one whenever anything of it is: so that nobody changes what they have not seen."""
        return hashlib.sha256(repr(astuple(self)).encode()).hexdigest()[:16]


def route_from(row: Mapping[str, Any]) -> Route:
    """From a row of the table; engines differ in how they give truths and choices."""
    fields = {name: row[name] for name in Route.__dataclass_fields__}
    truths = {name: bool(row[name]) for name in ("enabled", "dry_run")}
    return Route(**{**fields, **truths, "target": RouteTarget(row["target"])})
