"""Decides what may be stored as a task: only what every engine keeps and gives back as it was."""

from typing import Any

from tidings.decisions.texts import RefusingAs, json_payload, printable_text, refuse, visible_name
from tidings.errors import TaskRefused
from tidings.model.event import EventLimits
from tidings.model.submission import AcceptedTask
from tidings.model.task import LONGEST_KEY, LONGEST_TYPE

LAST_PRIORITY = 127
"""The bigger, the later. Seed 003 has it as a TINYINT, which ends there on MySQL and MariaDB."""
MOST_RETRIES = 1000
_YEARS = range(1970, 9999)


def accept_task(
    biz_type: str,
    biz_key: str,
    payload: Any,
    *,
    correlation_id: str,
    limits: EventLimits,
    priority: int = 10,
    run_at: Any = None,
    max_retries: int = 3,
) -> AcceptedTask:
    """The task as it will be stored, or TaskRefused. JSON text (str, bytes) stays as it is; values become JSON."""
    with RefusingAs(TaskRefused):
        return AcceptedTask(
            biz_type=visible_name(biz_type, "biz_type", LONGEST_TYPE),
            biz_key=printable_text(
                biz_key, "biz_key", LONGEST_KEY, "It says which task this is, such as an order's number."
            ),
            payload=json_payload(payload, limits),
            priority=_whole_number(priority, "priority", LAST_PRIORITY),
            run_at=None if run_at is None else _moment(run_at),
            max_retries=_whole_number(max_retries, "max_retries", MOST_RETRIES),
            correlation_id=visible_name(correlation_id, "correlation_id", 128),
        )


def _whole_number(number: Any, field: str, most: int) -> int:
    if isinstance(number, bool) or not isinstance(number, int):
        refuse(field, f"is a {type(number).__name__}, not a whole number")
    if not 0 <= number <= most:
        refuse(field, f"is {number}", f"Give one from 0 to {most}.")
    return int(number)


def _moment(given: Any) -> str:
    """In UTC, as it is stored; known by what it can do, as this code has no clock to compare it with."""
    if not hasattr(given, "year") or not hasattr(given, "utcoffset"):
        refuse("run_at", f"is a {type(given).__name__}, not a datetime")
    offset = given.utcoffset()
    if offset is None:
        refuse("run_at", f"is {given}, without a time zone", "Give an aware one, such as datetime.now(UTC).")
    try:
        moment = (given - offset).replace(tzinfo=None)
    except OverflowError:
        refuse("run_at", f"is {given}, which is no moment in UTC")
    if moment.year not in _YEARS:
        refuse("run_at", f"is {given}", f"Give a moment from {_YEARS[0]} to {_YEARS[-1]}.")
    return f"{moment:%Y-%m-%d %H:%M:%S.%f}"
