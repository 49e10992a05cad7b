"""The programs that measure, in sizes that say nothing: each finds its figures, and those mean what they say."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.backlog import JOBS, SAGAS, filling
from bench.bloat.__main__ import drain, rate_between
from bench.courier.sink import Sink, running
from bench.deliver.limit import find_limit
from bench.deliver.run import DATABASE, STUB, Case, deliver
from bench.engines import write_json
from bench.growth.course import BATCH, STEPS, Course
from bench.ingest.over_http import compare
from bench.latency.half_load import measure_half_load
from bench.peers.racing import ours
from bench.targets import Target, as_json, judge
from bench.usage import Usage, peak_memory
from tests.support.database import Database
from tests.support.processes import Process

FEW = 300


@pytest.fixture(scope="module")
def sink() -> Iterator[Sink]:
    with running("auto") as sink:
        yield sink


@pytest.mark.slow
async def test_a_case_delivers_everything_and_says_what_it_cost(engine: Database, sink: Sink) -> None:
    found = await deliver(engine, sink, Case(3), FEW, 60)
    assert found.completed == found.deliveries == FEW
    assert found.rate > 1
    assert found.moments[-1][1] == FEW
    assert {DATABASE, "sink", "router", "orchestrator", "worker", "cleaner"} == {*found.cpu}
    assert found.cpu["worker"] > 0
    assert found.log_bytes > 500
    assert 0 < found.commits < 20
    assert await engine.value(f"SELECT COUNT(*) FROM {SAGAS}") == 0, "what it made was removed"


@pytest.mark.slow
async def test_the_limit_writes_the_very_rows_of_a_delivery(
    engine: Database, sink: Sink, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Looked at where the program would remove them."""
    seen: dict[str, int] = {}
    empty = engine.empty

    async def look_first() -> None:
        for what, table, where in (
            ("attempts", "route_attempts", "status = 'sent'"),
            ("sagas", SAGAS, "status = 'Completed' AND attempt_count = 1"),
            ("jobs", JOBS, "status = 'Completed' AND applied_at IS NOT NULL AND worker_id IS NOT NULL"),
        ):
            seen[what] = await engine.value(f"SELECT COUNT(*) FROM {table} WHERE {where}")
        seen["totals"] = int(await engine.value("SELECT SUM(delivered) FROM delivery_totals WHERE subscription_id = 0"))
        await empty()

    monkeypatch.setattr(engine, "empty", look_first)
    found = await find_limit(engine, sink, "https", 3, FEW)
    assert seen == {"attempts": FEW // 3, "sagas": FEW, "jobs": FEW, "totals": FEW}
    assert found.rate <= min(found.sql_rate, found.client_rate) * 1.01
    assert {DATABASE, "sink", "client", "sql"} == {*found.cpu}


@pytest.mark.slow
async def test_growth_takes_every_step_and_leaves_as_much_as_there_was(engine: Database) -> None:
    course = await Course.laid(engine, 3)
    await course.grow(1_000)
    await course.round()
    await course.round()
    assert all(len(course.costs[step]) == 2 and course.costs[step][1].wall > 0 for step in STEPS)
    waiting = await engine.value(f"SELECT COUNT(*) FROM {SAGAS} WHERE status = 'Pending'")
    await course.disconnect()
    reads = await course.reads()
    await course.connect()
    await course.round()
    assert await engine.value(f"SELECT COUNT(*) FROM {SAGAS} WHERE status = 'Pending'") == waiting == 1_000
    assert all(reads[step].rows >= BATCH for step in STEPS), reads
    await course.close()


@pytest.mark.slow
@pytest.mark.quick_on("postgresql")
async def test_bloat_drains_every_task_while_somebody_looks_back(engine: Database) -> None:
    moments = await drain(engine, 2_000, held=True)
    assert moments[-1][1] == 2_000
    assert [count for _, count in moments] == sorted(count for _, count in moments)


@pytest.mark.full
@pytest.mark.timeout(600)
async def test_ingest_is_compared_with_the_least_that_could_do_it(engine: Database) -> None:
    found = {one.what: one for one in await compare(engine, 500, turns=1)}
    assert {*found} == {"single", "batch"}
    assert all(one.ours > 1 and one.bare > 1 for one in found.values())


@pytest.mark.full
@pytest.mark.timeout(600)
async def test_half_of_what_it_can_do_comes_in(engine: Database) -> None:
    found = await measure_half_load(engine, 2, 500)
    assert 0 < found.load <= found.most
    assert 0 < found.p50 <= found.p99 <= found.worst


@pytest.mark.full
@pytest.mark.timeout(600)
@pytest.mark.one_engine("postgresql", reason="that is where the peers are")
async def test_ours_is_measured_alone_and_as_users_run_it(engine: Database) -> None:
    alone, used = await ours(engine, 1_000, 100)
    assert alone.drain > 1
    assert used.drain > 1
    assert used.single is None


@pytest.mark.full
@pytest.mark.timeout(600)
async def test_without_http_more_processes_deliver_everything_too(engine: Database, sink: Sink) -> None:
    found = await deliver(engine, sink, Case(3, sender=STUB, workers=2, orchestrators=2), FEW, 60)
    assert found.completed == FEW


@pytest.mark.full
@pytest.mark.timeout(600)
async def test_with_ingest_what_is_published_meanwhile_is_delivered(engine: Database, sink: Sink) -> None:
    found = await deliver(engine, sink, Case(3, ingest=True), FEW, 60)
    assert found.completed == FEW
    assert found.cpu["api"] > 0


async def test_a_backlog_is_as_much_as_was_asked_for(engine: Database) -> None:
    async with filling(engine) as backlog:
        await backlog.subscribe(["https://a.example/", "https://b.example/"])
        await backlog.add_events(1_200, kinds=3)
        await backlog.add_sagas(1_100, lanes=2)
        await backlog.add_past(50, lanes=2)
        await backlog.add_jobs(40, lanes=2)
        await backlog.add_tasks(30, priorities=4)
        await backlog.tidy()
    counts = {
        "events": "SELECT COUNT(*) FROM events WHERE event_type IN ('kind-0', 'kind-1', 'kind-2')",
        "waiting": f"SELECT COUNT(*) FROM {SAGAS} WHERE status = 'Pending' AND subscription_id IN (1, 2)",
        "ended": f"SELECT COUNT(*) FROM {JOBS} WHERE status = 'Completed'",
        "to lease": f"SELECT COUNT(*) FROM {JOBS} WHERE status = 'Pending'",
        "tasks": "SELECT COUNT(*) FROM sys_pending_tasks WHERE priority BETWEEN 0 AND 3",
    }
    found = {what: await engine.value(text) for what, text in counts.items()}
    assert found == {"events": 1_200, "waiting": 1_100, "ended": 50, "to lease": 40, "tasks": 30}


def test_a_rate_is_that_between_two_moments() -> None:
    moments = [(0.0, 0), (1.0, 10), (2.0, 30), (3.0, 60), (4.0, 100)]
    assert rate_between(moments, 10, 60) == (60 - 10) / (3.0 - 1.0)
    assert rate_between(moments, 55, 100) == 40


def test_a_margin_lets_noise_pass_and_nothing_else() -> None:
    least, most = Target("share", 0.5), Target("cost", 1.0, at_most=True)
    assert [least.is_met(figure, 0.2) for figure in (0.5, 0.41, 0.39)] == [True, True, False]
    assert [most.is_met(figure, 0.2) for figure in (1.0, 1.19, 1.21)] == [True, True, False]
    kept, missed = judge("here", [(least, 0.6), (most, 1.01)])
    assert str(kept).startswith("kept")
    assert str(missed).startswith("MISSED")
    assert [one["met"] for one in as_json([kept, missed])] == [True, False]


def test_what_a_process_and_its_children_used_is_counted() -> None:
    busy = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'for _ in range(6_000_000): pass'])"
    with Process(
        [sys.executable, "-c", f"{busy}; import signal; print('done', flush=True); signal.pause()"]
    ) as process:
        usage = Usage({"busy": process.pid})
        process.wait_for_line("done")
        assert usage.seconds()["busy"] >= 0.05
        assert peak_memory(process.pid) > 1_000_000


def test_figures_go_to_a_file_whose_folder_is_made(tmp_path: Path) -> None:
    write_json(tmp_path / "new" / "figures.json", {"a": 1})
    assert json.loads((tmp_path / "new" / "figures.json").read_text()) == {"a": 1}
