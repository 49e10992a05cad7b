"""Turns notices into log lines; the only place with log wording."""

import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any

from tidings.telemetry.bus import listen
from tidings.telemetry.notices import (
    ActivityCrashed,
    ApiListening,
    DeliveriesSucceeded,
    DeliveryCrashed,
    DeliveryFailed,
    DeliverySucceeded,
    EndpointChecked,
    EndpointDown,
    EndpointUnusable,
    EndpointUp,
    EventNotRouted,
    EventRouted,
    EventsRouted,
    JobLeased,
    JobsGivenBack,
    JobsLeased,
    LeaseExpired,
    LeaseLost,
    LeaseReset,
    MigrationStepApplied,
    Notice,
    ReportDelayed,
    RequestCrashed,
    ResultIgnored,
    RightsChanged,
    RouterStopped,
    RouterWorking,
    RowSetAside,
    SagaCompleted,
    SagaDeadLettered,
    SagaRetryScheduled,
    SagasCompleted,
    SagasRequeued,
    SagasStarted,
    SagaStarted,
    ServerAwaited,
    StepFailed,
    StepRetried,
    StopOverdue,
    StoriesRemoved,
    TaskClaimed,
    TaskFailed,
    TaskFenceLost,
    TaskGivenUp,
    TaskOverdue,
    TaskRescued,
    TaskRetryScheduled,
    TasksArchived,
    TasksClaimed,
    TasksGivenBack,
    TasksSucceeded,
    TaskSucceeded,
    WakeupsUnheard,
    WorkStopped,
    WritersUnknown,
)

WORDING: dict[type[Notice], tuple[str, str]] = {
    ServerAwaited: ("warning", "database does not answer, still trying"),
    StepRetried: ("info", "transient database error, step runs again"),
    MigrationStepApplied: ("debug", "migration step applied"),
    RightsChanged: ("info", "rights brought in line with the map"),
    EventsRouted: ("debug", "events routed"),
    EventRouted: ("debug", "event routed"),
    EventNotRouted: ("error", "event can't be routed, set aside"),
    RouterStopped: ("warning", "router stands still"),
    RouterWorking: ("info", "router works again"),
    WritersUnknown: ("warning", "can't see who is writing events; holes stay open"),
    ApiListening: ("info", "the HTTP API takes requests"),
    RequestCrashed: ("error", "request failed through our fault"),
    WorkStopped: ("error", "work behind a request failed, waits to be resumed or asked for anew"),
    ActivityCrashed: ("error", "role crashed, begun again"),
    StopOverdue: ("warning", "did not stop in time, broken off"),
    StepFailed: ("error", "step failed, tried again"),
    WakeupsUnheard: ("info", "no notifications through this connection, polling instead"),
    RowSetAside: ("error", "database refuses a row, set aside"),
    SagasStarted: ("debug", "deliveries started"),
    SagaStarted: ("debug", "delivery started"),
    SagasCompleted: ("debug", "deliveries done"),
    SagaCompleted: ("debug", "delivered"),
    SagaRetryScheduled: ("info", "delivery failed, will be tried again"),
    SagaDeadLettered: ("warning", "delivery given up, dead letter written"),
    JobsLeased: ("debug", "jobs leased"),
    JobLeased: ("debug", "job leased"),
    JobsGivenBack: ("debug", "jobs given back unsent"),
    DeliveryCrashed: ("error", "sending failed in a way nobody planned for"),
    DeliveriesSucceeded: ("debug", "requests answered well"),
    DeliverySucceeded: ("debug", "request answered well"),
    DeliveryFailed: ("info", "request failed"),
    LeaseLost: ("warning", "report came too late, lease is another's"),
    ReportDelayed: ("warning", "reports can't be stored, kept and made again"),
    EndpointUnusable: ("error", "secrets of a subscription can't be opened, nothing is sent to it"),
    EndpointChecked: ("info", "endpoint called because a person asked for it"),
    StoriesRemoved: ("info", "finished stories removed by retention"),
    SagasRequeued: ("info", "ended deliveries were given a next generation"),
    TasksArchived: ("debug", "finished tasks moved to the history"),
    EndpointDown: ("warning", "endpoint only fails, tried one delivery at a time"),
    EndpointUp: ("info", "endpoint answers well again"),
    LeaseReset: ("warning", "lease expired, job may be leased again"),
    LeaseExpired: ("warning", "lease expired too often, job failed"),
    TasksClaimed: ("debug", "tasks claimed"),
    TaskClaimed: ("debug", "task claimed"),
    TasksSucceeded: ("debug", "tasks done"),
    TaskSucceeded: ("debug", "task done"),
    TaskRetryScheduled: ("info", "task failed, will be tried again"),
    TaskFailed: ("warning", "task failed for good"),
    TaskOverdue: ("warning", "handler is out of time and can't be stopped, its slot stays taken"),
    TaskFenceLost: ("warning", "result of a task came too late, it is another's"),
    TasksGivenBack: ("debug", "tasks given back, not begun"),
    TaskRescued: ("warning", "task's worker is silent, will be tried again"),
    TaskGivenUp: ("warning", "task's worker is silent, no retry left"),
    ResultIgnored: ("warning", "result of a job that its saga does not wait for"),
}


_LEVELS = ("debug", "info", "warning", "error")


def start_logging(log_format: str, log_level: str) -> None:
    """Writes a line to stderr for every notice from now on; `auto` is human on a terminal, JSON elsewhere."""
    human = log_format == "human" or (log_format == "auto" and sys.stderr.isatty())
    shown = _LEVELS[_LEVELS.index(log_level) :]
    # What would not be shown is not listened to, so that it need not be made.
    listen(_writer(human, log_level), *(kind for kind, (level, _) in WORDING.items() if level in shown))


def _writer(human: bool, log_level: str) -> Callable[[Notice], None]:
    # Made for the first line: most commands have nothing to say, and need not load what would write it.
    logger = cache(lambda: _logger(human, log_level))

    def write(notice: Notice) -> None:
        level, words = WORDING[type(notice)]
        status = {"delivery_status": notice.delivery_status} if notice.delivery_status else {}
        with suppress(OSError):  # whoever read our lines is gone; deliveries go on
            getattr(logger(), level)(words, **vars(notice), **status)

    return write


def _logger(human: bool, log_level: str) -> Any:
    import structlog

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
    return structlog.get_logger()
