"""Where matching events go, and how one routing decision ended (seed 004)."""

from enum import StrEnum


class RouteTarget(StrEnum):
    WEBHOOK = "webhook"
    TASK = "task"


class RouteAttemptStatus(StrEnum):
    SENT = "sent"
    DRY_RUN = "dry_run"
    DISABLED = "disabled"
    SKIPPED = "skipped"
    FAILED = "failed"
