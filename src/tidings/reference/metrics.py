"""docs/reference/metrics.md, from the metrics themselves."""

from collections.abc import Iterator

from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric

from tidings.model.route import RouteAttemptStatus
from tidings.model.saga import SagaStatus
from tidings.reference.writing import code, head, table
from tidings.telemetry.metrics import SECONDS, Metrics

_SAYS = """What `/metrics` shows to Prometheus: the server of the HTTP API has it, and every process that is given a
`metrics_port` ([settings](settings.md)). Counters and histograms are of the process that shows them: scrape each.
Gauges of depths, routers, windows, tasks and processes are read from the database when somebody asks, at most every
5 seconds, so every process shows the same; where the database can't be asked they are left out. What to watch, with
rules and a dashboard: [monitoring](../operating/monitoring.md).

The usual `process_*` metrics of prometheus-client (CPU, memory, open files) are there as well.
"""
STAGES = {
    "sagas_pending": "deliveries whose first attempt is due",
    "sagas_retry_due": "deliveries whose next attempt is due",
    "sagas_retry_later": "deliveries that wait for the time of their next attempt",
    "jobs_pending": "attempts that a worker may take now",
    "jobs_leased": "attempts that a worker has taken",
    "results_unapplied": "results that the orchestrator has not taken in yet",
    "tasks_running": "tasks that a handler has",
}

VALUES = {
    ("tidings_sagas_total", "status"): tuple(status.value for status in SagaStatus if status is not SagaStatus.PENDING),
    ("tidings_lease_resets_total", "outcome"): ("reset", "failed"),
    ("tidings_jobs_given_back_total", "reason"): ("crowded", "too late", "not allowed", "stopping"),
    ("tidings_events_routed_total", "status"): tuple(status.value for status in RouteAttemptStatus),
    ("tidings_tasks_total", "outcome"): ("success", "retry", "failed"),
    ("tidings_tasks_rescued_total", "outcome"): ("retry", "failed"),
    ("tidings_troubles_total", "kind"): (
        "step_failed",
        "step_retried",
        "report_delayed",
        "row_set_aside",
        "activity_crashed",
        "delivery_crashed",
        "task_overdue",
        "work_stopped",
    ),
}


def metrics_reference() -> str:
    """The whole page."""
    rows = [
        (code(name), metric.type, ", ".join(map(code, labels)), metric.documentation)
        for name, metric, labels in exported()
    ]
    return "\n".join(
        [
            head("Metrics", "src/tidings/telemetry/metrics.py", _SAYS),
            table(("metric", "type", "labels", "meaning"), rows),
            "## Values of labels\n",
            table(
                ("label", "values"),
                [
                    ("`stage` of depths", "; ".join(f"`{name}` ({says})" for name, says in STAGES.items())),
                    ("`outcome` of deliveries", "`delivered`, or an [error code](error-codes.md); beyond 100 `other`"),
                    *((f"`{label}` of `{name}`", ", ".join(map(code, VALUES[name, label]))) for name, label in VALUES),
                ],
            ),
            f"Buckets of the histograms, in seconds: {', '.join(f'{bound:g}' for bound in SECONDS)}.\n",
        ]
    )


def exported() -> Iterator[tuple[str, Metric, tuple[str, ...]]]:
    """Every metric by the name that a query uses; a histogram by what its three series have in common."""
    registry = CollectorRegistry()
    Metrics(registry)
    for collector in registry._collector_to_names:
        labels: tuple[str, ...] = getattr(collector, "_labelnames", ())
        for metric in collector.collect():
            yield f"{metric.name}_total" if metric.type == "counter" else metric.name, metric, labels
