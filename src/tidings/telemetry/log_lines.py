"""Turns notices into log lines; the only place with log wording."""

import sys
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import structlog

from tidings.telemetry.bus import listen
from tidings.telemetry.notices import (
    EventNotRouted,
    EventsRouted,
    MigrationStepApplied,
    Notice,
    RightsChanged,
    RouterStopped,
    RouterWorking,
    ServerAwaited,
    StepFailed,
    StepRetried,
    WritersUnknown,
)

WORDING: dict[type[Notice], tuple[str, str]] = {
    ServerAwaited: ("warning", "database does not answer, still trying"),
    StepRetried: ("info", "transient database error, step runs again"),
    MigrationStepApplied: ("info", "migration step applied"),
    RightsChanged: ("info", "rights brought in line with the map"),
    EventsRouted: ("debug", "events routed"),
    EventNotRouted: ("error", "event can't be routed, set aside"),
    RouterStopped: ("warning", "router stands still"),
    RouterWorking: ("info", "router works again"),
    WritersUnknown: ("warning", "can't see who is writing events; holes stay open"),
    StepFailed: ("error", "step failed, tried again"),
}


def start_logging(log_format: str, log_level: str) -> None:
    """Writes a line to stderr for every notice from now on; `auto` is human on a terminal, JSON elsewhere."""
    human = log_format == "human" or (log_format == "auto" and sys.stderr.isatty())
    renderer: Any = structlog.dev.ConsoleRenderer() if human else structlog.processors.JSONRenderer()
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(log_level),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    listen(_writer(structlog.get_logger()))


def _writer(logger: Any) -> Callable[[Notice], None]:
    def write(notice: Notice) -> None:
        level, words = WORDING[type(notice)]
        getattr(logger, level)(words, **asdict(notice))

    return write
