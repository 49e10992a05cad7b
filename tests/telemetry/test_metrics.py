"""Metrics: fed by the notices, and by what the observer reads for a scrape."""

import time

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from tests.roles.orchestrator.scene import Scene as Sagas
from tests.roles.worker.scene import Scene
from tests.support.database import Database
from tests.support.receiver import Answer, Receiver
from tests.support.waiting import eventually
from tidings.roles.observer.depths import DepthObserver
from tidings.telemetry import notices
from tidings.telemetry.bus import listening, tell
from tidings.telemetry.metrics import Metrics

ABOUT = ("c", 1, 2, 3, "w", "2026-01-01")


class Scraped:
    """Metrics of one's own, and what a scrape would show."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.metrics = Metrics(self.registry)

    def value(self, name: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(f"tidings_{name}", labels)


@pytest.fixture
def scraped() -> Scraped:
    return Scraped()


async def test_deliveries_are_counted_by_outcome(engine: Database, scraped: Scraped) -> None:
    async with Receiver() as receiver:
        scene = Scene(engine, receiver)
        receiver.answer("/broken", Answer(503))
        jobs = await scene.jobs(await scene.subscription("/well"), 5)
        jobs += await scene.jobs(await scene.subscription("/broken"), 2)
        await scene.jobs(await scene.subscription("/off", active=False), 3)
        with listening(scraped.metrics.hear, *scraped.metrics._hearing):
            async with scene.working(await scene.worker()):
                await scene.finished(jobs)
                await eventually(lambda: scraped.value("jobs_given_back_total", reason="not allowed"), what="the rest")
        await scene.close()
    assert scraped.value("deliveries_total", outcome="delivered") == 5
    assert scraped.value("deliveries_total", outcome="http_503") == 2
    assert scraped.value("delivery_seconds_count", outcome="delivered") == 5
    assert scraped.value("delivery_seconds_count", outcome="failed") == 2
    assert scraped.value("jobs_leased_total") == 10
    assert scraped.value("jobs_given_back_total", reason="not allowed") == 3
    assert scraped.value("in_flight") == 0


def test_everything_that_happens_to_sagas_leases_and_events_is_counted(scraped: Scraped) -> None:
    hear = scraped.metrics.hear
    hear(notices.SagasStarted(3))
    hear(notices.SagasCompleted(2))
    hear(notices.SagaRetryScheduled(*ABOUT, 1, "timeout", 5.0))
    hear(notices.SagaDeadLettered(*ABOUT, 3, "timeout"))
    hear(notices.LeaseLost(*ABOUT, 200, None))
    hear(notices.LeaseReset(1, 2, "w", "x", 1))
    hear(notices.LeaseExpired(1, 2, "w", "x", 4))
    hear(notices.SagasRequeued((1, 2)))
    hear(notices.EventsRouted("default", 5, 0, 4, 0, 0, 4, 0, 0, 1, 0))
    for status, count in (("InProgress", 3), ("Completed", 2), ("PendingRetry", 1), ("DeadLettered", 1)):
        assert scraped.value("sagas_total", status=status) == count
    assert scraped.value("dead_letters_total", error_code="timeout") == 1
    assert scraped.value("lost_fences_total") == 1
    assert scraped.value("lease_resets_total", outcome="reset") == 1
    assert scraped.value("lease_resets_total", outcome="failed") == 1
    assert scraped.value("requeued_total") == 2
    assert scraped.value("events_routed_total", status="sent") == 4
    assert scraped.value("events_routed_total", status="skipped") == 1


def test_an_endpoint_can_not_make_up_labels_without_end(scraped: Scraped) -> None:
    for status in range(300, 600):
        scraped.metrics.hear(notices.DeliveryFailed(*ABOUT, status, 1, f"http_{status}"))
    samples = [line for line in generate_latest(scraped.registry).decode().splitlines() if "deliveries_total{" in line]
    assert len(samples) <= 101
    assert scraped.value("deliveries_total", outcome="other") == 200


def test_nor_can_it_where_only_dead_letters_are_heard_of(scraped: Scraped) -> None:
    for status in range(300, 600):
        scraped.metrics.hear(notices.SagaDeadLettered(*ABOUT, 3, f"http_{status}"))
    assert scraped.value("dead_letters_total", error_code="http_300") == 1
    assert scraped.value("dead_letters_total", error_code="other") == 200


async def test_a_scrape_shows_what_waits_and_for_how_long(engine: Database, scraped: Scraped) -> None:
    sagas = await Sagas.of(engine)
    subscription = await sagas.subscription()
    await sagas.sagas(subscription, 4)
    await sagas.sql("UPDATE webhook_delivery_sagas SET next_attempt_at = '2020-01-01' WHERE id = 1")
    await sagas.saga(subscription, status="PendingRetry", next_attempt_at="2100-01-01")
    for number, status in enumerate(("Pending", "Leased", "Completed"), start=1):
        await sagas.sql(
            "INSERT INTO webhook_delivery_jobs (saga_id, subscription_id, attempt_at, attempt_no, status, finished_at)"
            f" VALUES ({number}, {subscription}, '2020-01-01', 1, '{status}', '2020-01-01')"
        )
    await sagas.sql("INSERT INTO route_worker_cursors (worker_name, event_domain, position) VALUES ('default', '*', 2)")
    observer = await engine.open("observer")
    depths = await DepthObserver.step(observer, DepthObserver.depths)
    scraped.metrics.show_depths(depths)
    assert scraped.value("depth", stage="sagas_pending") == 4
    assert (scraped.value("oldest_seconds", stage="sagas_pending") or 0) > 86_400 * 365
    assert scraped.value("depth", stage="sagas_retry_later") == 1
    assert scraped.value("depth", stage="sagas_retry_due") == 0
    assert scraped.value("depth", stage="jobs_pending") == 1
    assert scraped.value("depth", stage="jobs_leased") == 1
    assert scraped.value("depth", stage="results_unapplied") == 1
    assert scraped.value("router_lag_events", router="default") == 3
    lag = scraped.value("router_lag_seconds", router="default")
    assert lag is not None
    assert lag >= 0
    few = await DepthObserver.step(observer, lambda it: it.depths(counted_to=2))
    assert few.queues["sagas_pending"].count == 2


async def test_a_scrape_shows_the_narrowest_windows_and_no_more_than_a_hundred(
    engine: Database, scraped: Scraped
) -> None:
    rows = ", ".join(f"({number}, {number})" for number in range(1, 131))
    await engine.sql(f"INSERT INTO delivery_lanes (subscription_id, window_size) VALUES {rows}")
    await engine.sql("INSERT INTO delivery_lanes (subscription_id, window_size) VALUES (200, 2000)")
    observer = await engine.open("observer")
    scraped.metrics.show_depths(await DepthObserver.step(observer, DepthObserver.depths))
    assert scraped.value("window", subscription="1") == 1
    assert scraped.value("window", subscription="100") == 100
    assert scraped.value("window", subscription="101") is None
    await engine.sql("UPDATE delivery_lanes SET window_size = 2000")
    scraped.metrics.show_depths(await DepthObserver.step(observer, DepthObserver.depths))
    assert scraped.value("window", subscription="1") is None


def test_telling_costs_little() -> None:
    """For each delivery: started, answered, completed, with metrics on. A wide bound, for any machine."""
    metrics = Scraped().metrics
    rounds = 2000
    with listening(metrics.hear, *metrics._hearing):
        began = time.process_time()
        for _ in range(rounds):
            tell(notices.DeliveriesSucceeded("w", (3,)))
            tell(notices.SagasStarted(1))
            tell(notices.SagasCompleted(1))
        cost = (time.process_time() - began) / rounds
    assert cost < 200e-6
