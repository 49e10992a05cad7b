"""Turns notices into Prometheus metrics, and what the observer read into gauges; the only place with their names."""

from collections.abc import Callable, Mapping
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from tidings.model.depths import Depths
from tidings.telemetry.bus import listen
from tidings.telemetry.notices import (
    ActivityCrashed,
    DeliveriesSucceeded,
    DeliveryCrashed,
    DeliveryFailed,
    EventNotRouted,
    EventsRouted,
    JobsGivenBack,
    JobsLeased,
    LeaseExpired,
    LeaseLost,
    LeaseReset,
    Notice,
    ReportDelayed,
    ResultIgnored,
    RowSetAside,
    SagaCompleted,
    SagaDeadLettered,
    SagaRetryScheduled,
    SagasCompleted,
    SagasRequeued,
    SagasStarted,
    SagaStarted,
    StepFailed,
    StepRetried,
    TaskFailed,
    TaskFenceLost,
    TaskGivenUp,
    TaskOverdue,
    TaskRescued,
    TaskRetryScheduled,
    TasksClaimed,
    TasksGivenBack,
    TasksSucceeded,
    WorkStopped,
)

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
_OTHER = "other"
_MOST_NAMES = 100


class Metrics:
    """`hear` is a listener; whoever is scraped calls `show_depths` first with what the observer just read."""

    def __init__(self, registry: CollectorRegistry) -> None:
        def counter(name: str, help: str, *labels: str) -> Counter:
            return Counter(f"tidings_{name}", help, labels, registry=registry)

        def gauge(name: str, help: str, *labels: str) -> Gauge:
            return Gauge(f"tidings_{name}", help, labels, registry=registry)

        self.deliveries = counter(
            "deliveries", "Requests that ended, by outcome: delivered, or an error code", "outcome"
        )
        self.durations = Histogram(
            "tidings_delivery_seconds", "How long requests took", ("outcome",), buckets=SECONDS, registry=registry
        )
        self.sagas = counter("sagas", "Moves of sagas, by the status they came to", "status")
        self.dead_letters = counter("dead_letters", "Deliveries given up, by the last error code", "error_code")
        self.requeued = counter("requeued", "Ended deliveries that were given a next generation")
        self.leased = counter("jobs_leased", "Jobs leased by workers of this process")
        self.given_back = counter("jobs_given_back", "Jobs given back unsent, by reason", "reason")
        self.lost_fences = counter("lost_fences", "Reports that came too late and changed nothing")
        self.lease_resets = counter("lease_resets", "Leases that expired, by what became of the job", "outcome")
        self.ignored = counter("results_ignored", "Results of jobs that their sagas did not wait for")
        self.routed = counter("events_routed", "Decisions of routers, by status", "status")
        self.not_routed = counter("route_dead_letters", "Events that could not be routed")
        self.troubles = counter("troubles", "Steps and reports that failed, and what crashed", "kind")
        self.in_flight = gauge("in_flight", "Jobs that workers of this process have leased and not reported")
        self.depth = gauge("depth", "How many wait, by stage; no more are counted than counted_to", "stage")
        self.counted_to = gauge("depth_counted_to", "Where counting ends: so many or more")
        self.oldest = gauge("oldest_seconds", "For how long the oldest waits, by stage", "stage")
        self.router_lag = gauge(
            "router_lag_events", "How far a router is behind the log, in numbers of events", "router"
        )
        self.router_oldest = gauge("router_lag_seconds", "For how long the oldest unrouted event waits", "router")
        self.holes = gauge("router_holes", "Ranges of numbers that may still become events", "router")
        self.processes = gauge("processes", "Processes that gave a sign of life lately", "process")
        self.windows = gauge(
            "window", "Deliveries that may be under way, where they are the fewest, by subscription", "subscription"
        )
        self._declare_tasks(counter, gauge, registry)
        self._outcomes: dict[str, tuple[Any, Any]] = {}
        self._error_codes: set[str] = set()
        self._biz_types: set[str] = set()
        self._hearing = self._what_is_heard()

    def _declare_tasks(
        self, counter: Callable[..., Counter], gauge: Callable[..., Gauge], registry: CollectorRegistry
    ) -> None:
        self.tasks = counter("tasks", "Runs of handlers that ended, by type and outcome", "biz_type", "outcome")
        self.task_durations = Histogram(
            "tidings_task_seconds", "How long handlers ran", ("biz_type",), buckets=SECONDS, registry=registry
        )
        self.tasks_claimed = counter("tasks_claimed", "Tasks claimed by workers of this process")
        self.lost_races = counter("task_races_lost", "Tasks that another worker was quicker to claim")
        self.tasks_given_back = counter("tasks_given_back", "Tasks given back without being begun, by reason", "reason")
        self.lost_task_fences = counter("task_fences_lost", "Results of tasks that came too late and changed nothing")
        self.rescued = counter("tasks_rescued", "Tasks of silent workers, by what became of them", "outcome")
        self.tasks_waiting = gauge("tasks_waiting", "Tasks that nobody has claimed, by type", "biz_type")
        self.tasks_due = gauge("tasks_due", "Those of them whose time has come", "biz_type")
        self.tasks_oldest = gauge("tasks_oldest_seconds", "For how long the first of those waits", "biz_type")

    def listen(self) -> None:
        """From now on."""
        listen(self.hear, *self._hearing)

    def hear(self, notice: Notice) -> None:
        self._hearing[type(notice)](notice)

    def show_depths(self, depths: Depths) -> None:
        self.forget_depths()  # who is gone is not shown for ever
        for stage, depth in depths.queues.items():
            self.depth.labels(stage).set(depth.count)
            self.oldest.labels(stage).set(depth.oldest_seconds)
        self.counted_to.set(depths.counted_to)
        for task in depths.tasks:
            self.tasks_waiting.labels(task.biz_type).set(task.waiting)
            self.tasks_due.labels(task.biz_type).set(task.due)
            self.tasks_oldest.labels(task.biz_type).set(task.oldest_seconds)
        for lag in depths.routers:
            self.router_lag.labels(lag.router).set(lag.events)
            self.router_oldest.labels(lag.router).set(lag.oldest_seconds)
            self.holes.labels(lag.router).set(lag.holes)
        for process, alive in depths.processes.items():
            self.processes.labels(process).set(alive)
        for subscription, window in depths.windows.items():
            self.windows.labels(str(subscription)).set(window)

    def forget_depths(self) -> None:
        """What was once so is not shown as if it still were."""
        of_tasks = (self.tasks_waiting, self.tasks_due, self.tasks_oldest)
        of_routers = (self.router_lag, self.router_oldest, self.holes)
        for gauge in (self.depth, self.oldest, self.processes, self.windows, *of_routers, *of_tasks):
            gauge.clear()

    def _what_is_heard(self) -> Mapping[type[Notice], Callable[[Any], None]]:
        return {
            DeliveriesSucceeded: lambda notice: self._ended("delivered", *notice.durations_ms),
            DeliveryFailed: lambda notice: self._ended(notice.error_code, notice.duration_ms),
            DeliveryCrashed: lambda _: self._crashed(),
            JobsLeased: self._leased,
            JobsGivenBack: self._given_back,
            LeaseLost: lambda _: self.lost_fences.inc(),
            LeaseReset: lambda _: self.lease_resets.labels("reset").inc(),
            LeaseExpired: lambda _: self.lease_resets.labels("failed").inc(),
            SagasStarted: self._moved(SagaStarted),
            SagasCompleted: self._moved(SagaCompleted),
            SagaRetryScheduled: lambda notice: self.sagas.labels(notice.delivery_status).inc(),
            SagaDeadLettered: self._buried,
            SagasRequeued: lambda notice: self.requeued.inc(len(notice.saga_ids)),
            ResultIgnored: lambda _: self.ignored.inc(),
            EventsRouted: self._routed,
            EventNotRouted: lambda _: self.not_routed.inc(),
            TasksClaimed: self._claimed,
            TasksSucceeded: lambda notice: self._task_ran(notice.biz_type, "success", *notice.durations_ms),
            TaskRetryScheduled: lambda notice: self._task_ran(notice.biz_type, "retry", notice.duration_ms),
            TaskFailed: lambda notice: self._task_ran(notice.biz_type, "failed", notice.duration_ms),
            TasksGivenBack: lambda notice: self.tasks_given_back.labels(notice.reason).inc(len(notice.task_ids)),
            TaskFenceLost: lambda _: self.lost_task_fences.inc(),
            TaskOverdue: self._trouble("task_overdue"),
            TaskRescued: lambda _: self.rescued.labels("retry").inc(),
            TaskGivenUp: lambda _: self.rescued.labels("failed").inc(),
            StepFailed: self._trouble("step_failed"),
            StepRetried: self._trouble("step_retried"),
            ReportDelayed: self._trouble("report_delayed"),
            RowSetAside: self._trouble("row_set_aside"),
            ActivityCrashed: self._trouble("activity_crashed"),
            WorkStopped: self._trouble("work_stopped"),
        }

    def _moved(self, kind: type[Notice]) -> Callable[[SagasStarted | SagasCompleted], None]:
        child = self.sagas.labels(kind.delivery_status)
        return lambda notice: child.inc(notice.sagas)

    def _trouble(self, kind: str) -> Callable[[Notice], None]:
        child = self.troubles.labels(kind)
        return lambda _: child.inc()

    def _ended(self, outcome: str, *durations_ms: int) -> None:
        count, histogram = self._outcomes.get(outcome) or self._outcome(outcome)
        count.inc(len(durations_ms))
        for duration in durations_ms:
            histogram.observe(duration / 1000)
        self.in_flight.dec(len(durations_ms))

    def _outcome(self, outcome: str) -> tuple[Any, Any]:
        """Endpoints may answer with any status: so many kinds are told apart, and no more."""
        if len(self._outcomes) >= _MOST_NAMES:
            outcome = _OTHER
        kind = "delivered" if outcome == "delivered" else "failed"
        return self._outcomes.setdefault(outcome, (self.deliveries.labels(outcome), self.durations.labels(kind)))

    def _claimed(self, notice: TasksClaimed) -> None:
        self.tasks_claimed.inc(notice.tasks)
        self.lost_races.inc(notice.lost)

    def _task_ran(self, biz_type: str, outcome: str, *durations_ms: int) -> None:
        biz_type = _told_apart(biz_type, self._biz_types)
        self.tasks.labels(biz_type, outcome).inc(len(durations_ms))
        histogram = self.task_durations.labels(biz_type)
        for duration in durations_ms:
            histogram.observe(duration / 1000)

    def _crashed(self) -> None:
        self.troubles.labels("delivery_crashed").inc()
        self.in_flight.dec()

    def _leased(self, notice: JobsLeased) -> None:
        self.leased.inc(notice.jobs)
        self.in_flight.inc(notice.jobs)

    def _given_back(self, notice: JobsGivenBack) -> None:
        self.given_back.labels(notice.reason).inc(len(notice.job_ids))
        self.in_flight.dec(len(notice.job_ids))

    def _buried(self, notice: SagaDeadLettered) -> None:
        self.sagas.labels(notice.delivery_status).inc()
        self.dead_letters.labels(_told_apart(notice.error_code, self._error_codes)).inc()

    def _routed(self, notice: EventsRouted) -> None:
        for status in ("sent", "dry_run", "disabled", "skipped", "failed"):
            if count := getattr(notice, status):
                self.routed.labels(status).inc(count)


def _told_apart(name: str, known: set[str]) -> str:
    if name not in known and len(known) >= _MOST_NAMES:
        return _OTHER
    known.add(name)
    return name
