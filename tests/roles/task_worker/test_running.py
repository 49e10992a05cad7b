"""Running handlers: what they are given, and what their end means for the task (seed 003 第四步, rulings 4 and 8)."""

import asyncio
import datetime
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import pytest

from tests.roles.task_worker.scene import Scene
from tests.support.waiting import eventually
from tidings.roles.task_worker.worker import TaskWorker
from tidings.tasks import Fail, Handlers, Retry, TaskContext
from tidings.telemetry.notices import Notice, TaskFailed, TaskOverdue, TaskRetryScheduled, TaskSucceeded


async def outcome(scene: Scene, handlers: Handlers, **task: Any) -> dict[str, Any]:
    """Of one task that is worked off."""
    (id,) = await scene.submit(**task)
    await scene.work_off(await scene.worker(handlers))
    return await scene.task(id)


def raising(error: BaseException, *, plain: bool) -> Handlers:
    handlers = Handlers()
    if plain:

        @handlers.task("A")
        def handle(payload: object) -> None:
            raise error

    else:

        @handlers.task("A")
        async def handle_async(payload: object) -> None:
            raise error

    return handlers


PLAIN_OR_ASYNC = pytest.mark.parametrize("plain", [False, True], ids=["async", "plain"])


@PLAIN_OR_ASYNC
async def test_a_handler_that_returns_ends_its_task_well(scene: Scene, told: list[Notice], plain: bool) -> None:
    """Seed 003 情境 A: status 2, 'OK', updated_at."""
    handlers, got, where = Handlers(), list[Any](), list[threading.Thread]()

    def take(payload: Any, context: TaskContext) -> None:
        got.append((payload, context))
        where.append(threading.current_thread())

    async def take_async(payload: Any, context: TaskContext) -> None:
        take(payload, context)

    handlers.task("A")(take if plain else take_async)
    row = await outcome(scene, handlers, payload={"to": "a@example.org", "n": [1, 2]}, retry_count=1)
    assert (row["status"], row["result_msg"], row["retry_count"], row["version"]) == (2, "OK", 1, 2)
    assert row["updated_at"] > row["created_at"]
    ((payload, context),) = got
    assert payload == {"to": "a@example.org", "n": [1, 2]}
    assert (context.id, context.attempt, context.biz_type) == (row["id"], 2, "A")
    assert (context.biz_key, context.correlation_id, context.version) == (row["biz_key"], row["correlation_id"], 1)
    left = (context.deadline - datetime.datetime.now(datetime.UTC)).total_seconds()
    assert 30 < left <= 60
    assert (where[0] is threading.main_thread()) is not plain
    (succeeded,) = [notice for notice in told if isinstance(notice, TaskSucceeded)]
    assert (succeeded.correlation_id, succeeded.task_id) == (row["correlation_id"], row["id"])
    assert (succeeded.worker_id, succeeded.attempt) == ("w1", 2)


async def waiting(payload: object) -> None:
    await asyncio.sleep(0)


def yielding(payload: object) -> Iterator[object]:
    yield payload


async def yielding_async(payload: object) -> AsyncIterator[object]:
    yield payload


@pytest.mark.filterwarnings("ignore:coroutine 'waiting' was never awaited")
@pytest.mark.parametrize(
    ("function", "kind"), [(waiting, "coroutine"), (yielding, "generator"), (yielding_async, "async_generator")]
)
async def test_a_plain_handler_whose_work_nobody_runs_has_not_done_it(
    scene: Scene, function: Callable[[object], object], kind: str
) -> None:
    """Such as one in a decorator that knows nothing of `async def`."""
    handlers = Handlers()
    handlers.task("A")(lambda payload: function(payload))
    row = await outcome(scene, handlers)
    assert (row["status"], row["result_msg"]) == (3, f"The handler returned a {kind}, which nobody runs")


@PLAIN_OR_ASYNC
async def test_a_handler_that_fails_is_tried_again_after_a_while(scene: Scene, told: list[Notice], plain: bool) -> None:
    """Seed 003 情境 B; ruling 4."""
    row = await outcome(scene, raising(ValueError("boom"), plain=plain))
    assert (row["status"], row["result_msg"], row["retry_count"]) == (3, "ValueError: boom", 1)
    assert 60 <= await scene.delay(row["id"]) <= 66
    (failed,) = [notice for notice in told if isinstance(notice, TaskRetryScheduled)]
    assert "boom" in failed.traceback


async def test_each_further_failure_waits_longer_up_to_a_bound(scene: Scene) -> None:
    handlers = raising(ValueError("boom"), plain=False)
    third = await outcome(scene, handlers, retry_count=2)
    ninth = await outcome(scene, handlers, retry_count=8, max_retries=20)
    assert 240 <= await scene.delay(third["id"]) <= 264
    assert 3600 <= await scene.delay(ninth["id"]) <= 3960


async def test_a_failure_without_retries_left_is_for_good(scene: Scene, told: list[Notice]) -> None:
    """Seed 003 情境 C; ruling 8: max_retries counts re-tries."""
    row = await outcome(scene, raising(ValueError("boom"), plain=False), retry_count=3)
    assert (row["status"], row["result_msg"], row["retry_count"]) == (4, "Max retries exceeded: ValueError: boom", 3)
    assert [notice.task_id for notice in told if isinstance(notice, TaskFailed)] == [row["id"]]


@PLAIN_OR_ASYNC
async def test_a_handler_may_choose_when_it_is_tried_again(scene: Scene, plain: bool) -> None:
    row = await outcome(scene, raising(Retry("busy", after=500), plain=plain))
    assert (row["status"], row["result_msg"], row["retry_count"]) == (3, "busy", 1)
    assert await scene.delay(row["id"]) == pytest.approx(500, abs=0.001)


async def test_asking_for_a_retry_uses_one_up(scene: Scene) -> None:
    row = await outcome(scene, raising(Retry("busy", after=0), plain=False), max_retries=2)
    assert (row["status"], row["result_msg"], row["retry_count"]) == (4, "Max retries exceeded: busy", 2)
    assert row["version"] == 6


@PLAIN_OR_ASYNC
async def test_a_handler_may_fail_its_task_for_good(scene: Scene, plain: bool) -> None:
    row = await outcome(scene, raising(Fail("no such user"), plain=plain))
    assert (row["status"], row["result_msg"], row["retry_count"]) == (4, "no such user", 0)


class Wordless(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


@PLAIN_OR_ASYNC
@pytest.mark.parametrize(
    ("error", "said"),
    [
        (SystemExit(3), "SystemExit: 3"),
        (asyncio.CancelledError(), "CancelledError"),
        (GeneratorExit(), "GeneratorExit"),
        (Wordless(), "Wordless"),
        (ValueError("a\0b\ud800"), "ValueError: a\ufffdb\ufffd\ufffd\ufffd"),
        (ValueError("x" * 100_000), f"ValueError: {'x' * 1_987}…"),
    ],
    ids=["exit", "cancelled", "generator", "wordless", "odd", "long"],
)
async def test_whatever_a_handler_does_is_a_failure_of_its_own_task_only(
    scene: Scene, plain: bool, error: BaseException, said: str
) -> None:
    handlers = raising(error, plain=plain)
    ran = list[int]()

    @handlers.task("B")
    async def other(payload: object, context: TaskContext) -> None:
        ran.append(context.id)

    others = await scene.submit("B", 3)
    row = await outcome(scene, handlers)
    assert (row["status"], row["result_msg"]) == (3, said)
    assert sorted(ran) == others


@dataclass
class Mail:
    to: str


async def test_a_payload_that_does_not_fit_is_a_failure_with_the_reason(scene: Scene) -> None:
    handlers, ran = Handlers(), list[Mail]()

    @handlers.task("A")
    async def send(mail: Mail) -> None:
        ran.append(mail)

    row = await outcome(scene, handlers, payload={"to": 5})
    assert row["status"] == 3
    assert row["result_msg"].startswith("The payload does not fit Mail: Expected `str`, got `int`")
    well = await outcome(scene, handlers, payload={"to": "a"})
    assert (well["status"], ran) == (2, [Mail("a")])


async def test_a_task_without_payload_gives_none(scene: Scene) -> None:
    handlers, got = Handlers(), list[object]()

    @handlers.task("A")
    async def handle(payload: object) -> None:
        got.append(payload)

    await scene.sql("INSERT INTO sys_pending_tasks (biz_type, biz_key) VALUES ('A', 'k')")
    await scene.work_off(await scene.worker(handlers))
    assert got == [None]


async def test_a_coroutine_that_is_out_of_time_is_cancelled_and_has_failed(scene: Scene) -> None:
    handlers, cancelled = Handlers(), asyncio.Event()

    @handlers.task("A", timeout=0.1, visibility_timeout=60)
    async def handle(payload: object) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    row = await outcome(scene, handlers)
    assert (row["status"], row["result_msg"]) == (3, "The handler did not end within 0.1 s")
    assert cancelled.is_set()


async def quick_worker(scene: Scene, handlers: Handlers) -> TaskWorker:
    """One that thinks its handlers quick: it claims ahead, and runs what it has one after the other."""
    worker = await scene.worker(handlers)
    worker._hands._pace["A"] = 0.0001
    return worker


async def test_a_task_feels_nothing_of_the_one_before_it(scene: Scene) -> None:
    """Quick ones run one after the other in the same event-loop task: what the first leaves there is its own."""
    handlers, seen, variable = Handlers(), list[tuple[str, int]](), ContextVar("variable", default="clean")

    @handlers.task("A", timeout=0.2, visibility_timeout=60, concurrency=1)
    async def handle(payload: dict[str, str]) -> None:
        me = asyncio.current_task()
        assert me is not None
        seen.append((variable.get(), me.cancelling()))
        match payload["does"]:
            case "sets":
                variable.set("dirty")
            case "hangs":
                await asyncio.Event().wait()
            case "cancels":
                me.cancel()

    for does in ("sets", "nothing", "hangs", "nothing", "cancels", "nothing"):
        await scene.submit(payload={"does": does})
    await scene.work_off(await quick_worker(scene, handlers))
    assert seen == [("clean", 0)] * 6
    assert await scene.statuses() == {2: 5, 3: 1}


async def test_handlers_that_never_wait_leave_turns_to_others(scene: Scene) -> None:
    await scene.submit(count=30)
    handlers, turns, turns_at = Handlers(), 0, list[int]()

    @handlers.task("A", concurrency=1)
    async def handle(payload: object) -> None:
        turns_at.append(turns)
        threading.Event().wait(0.002)

    async def take_turns() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    others = asyncio.create_task(take_turns())
    await scene.work_off(await quick_worker(scene, handlers))
    others.cancel()
    assert len({*turns_at}) >= 5


async def test_a_thread_that_is_out_of_time_has_failed_and_keeps_its_slot_until_it_ends(
    scene: Scene, told: list[Notice]
) -> None:
    """Nobody can stop a thread: what it still says is not heard."""
    (stuck, *others) = await scene.submit(count=3)
    handlers, release, ran = Handlers(), threading.Event(), list[int]()

    @handlers.task("A", timeout=0.2, visibility_timeout=60, concurrency=1)
    def handle(payload: object, context: TaskContext) -> None:
        ran.append(context.id)
        if context.id == stuck:
            release.wait(20)

    async def has_failed() -> bool:
        return bool((await scene.task(stuck))["status"] == 3)

    worker = await scene.worker(handlers)
    async with scene.working(worker):
        await eventually(has_failed, what="the failure to be recorded")
        assert (await scene.task(stuck))["result_msg"] == "The handler did not end within 0.2 s"
        assert ran == [stuck]
        assert [notice.task_id for notice in told if isinstance(notice, TaskOverdue)] == [stuck]
        release.set()
        await eventually(lambda: ran == [stuck, *others], what="the slot to be free again")
    row = await scene.task(stuck)
    assert (row["status"], row["version"], row["retry_count"]) == (3, 2, 1)


async def test_no_more_plain_handlers_run_at_once_than_there_are_threads(scene: Scene) -> None:
    await scene.submit(count=12)
    handlers, lock, running, most = Handlers(), threading.Lock(), 0, 0
    together = threading.Barrier(3)

    @handlers.task("A")
    def handle(payload: object) -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        together.wait(20)
        with lock:
            running -= 1

    await scene.work_off(await scene.worker(handlers, threads=3))
    assert most == 3
    assert await scene.statuses() == {2: 12}


async def test_a_handler_that_blocks_the_event_loop_still_gives_signs_of_life(scene: Scene) -> None:
    """A heartbeat keeps a task. It comes from a thread of its own, so nothing of ours can be asked meanwhile."""
    (task,) = await scene.submit()
    handlers = Handlers()
    heard = list[datetime.datetime]()

    @handlers.task("A", timeout=10, visibility_timeout=30)
    async def handle(payload: object) -> None:
        for _ in range(20):
            blocked.wait(0.1)
            heard.append(asked())
            if heard[-1] > heard[0]:
                return

    def asked() -> datetime.datetime:
        """By another loop, in another thread."""
        answers: list[datetime.datetime] = []
        asking = threading.Thread(target=lambda: answers.append(asyncio.run(scene.task(task))["updated_at"]))
        asking.start()
        asking.join()
        return answers[0]

    blocked = threading.Event()
    worker = await scene.worker(handlers)
    worker._heartbeat._seconds = 0.2
    async with scene.working(worker):
        await eventually(lambda: len(heard) > 1, what="it to run")
    assert heard[-1] > heard[0]
    assert (await scene.task(task))["status"] == 2


async def test_an_empty_list_of_handlers_claims_nothing(scene: Scene) -> None:
    await scene.submit()
    worker = await scene.worker(Handlers())
    assert not await worker.step()
    await worker.close()
    assert await scene.statuses() == {0: 1}
