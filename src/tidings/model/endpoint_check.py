"""A call to one endpoint that a person asked for: to verify it, or to try it out."""

from enum import StrEnum


class CheckKind(StrEnum):
    VERIFICATION = "verification"
    TEST = "test"


class CheckOutcome(StrEnum):
    """All that is told of a verification: what the endpoint answered is nobody's business but the operator's."""

    PASSED = "passed"
    FAILED = "failed"
    TIMEOUT = "timeout"
    BLOCKED = "blocked"
    OUTDATED = "outdated"


# As they stand in the column biz_type.
TASK_OF = {CheckKind.VERIFICATION: "subscription.verify", CheckKind.TEST: "subscription.test"}
OWN_TASKS = frozenset(TASK_OF.values())
"""Types that an application can't have handlers for: they run under a role of their own."""


def process_of(biz_type: str) -> str:
    """Which process runs tasks of this type."""
    return "verifier" if biz_type in OWN_TASKS else "task-worker"
