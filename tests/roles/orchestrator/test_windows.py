"""Windows at work: they follow the results, all orchestrators know them, and they survive a restart."""

import pytest

from tests.roles.orchestrator.scene import JOBS, SAGAS, Scene
from tidings.decisions import pacing
from tidings.decisions.advancing import RetryPolicy
from tidings.decisions.pacing import PROBES_AT_ONCE, FlowLimits
from tidings.decisions.retrying import Backoff
from tidings.roles.orchestrator import orchestrator as orchestrator_module
from tidings.roles.orchestrator.orchestrator import Orchestrator
from tidings.telemetry.notices import EndpointDown, EndpointUp, Notice

pytestmark = pytest.mark.slow

ACTIVE = "status IN ('Pending', 'Leased')"
LIMITS = FlowLimits(active_jobs_max=1000, window_start=8, window_max=64)
POLICY = RetryPolicy(max_retry_limit=16, backoff=Backoff(base=3600, longest=3600, jitter=0))


@pytest.fixture(autouse=True)
def _counts_in_every_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(orchestrator_module, "_SECONDS_BETWEEN_COUNTS", 0.0)


class Lane:
    """One subscription, and an orchestrator whose windows move."""

    def __init__(self, scene: Scene, subscription: int, orchestrator: Orchestrator) -> None:
        self.scene, self.subscription, self.orchestrator = scene, subscription, orchestrator

    @classmethod
    async def of(cls, scene: Scene, sagas: int) -> "Lane":
        subscription = await scene.subscription()
        if sagas:
            await scene.sagas(subscription, sagas)
        return cls(scene, subscription, await scene.another(POLICY, LIMITS))

    async def active(self) -> int:
        return await self.scene.count(JOBS, f"subscription_id = {self.subscription} AND {ACTIVE}")

    async def round(self, error_code: str = "") -> int:
        """All that is under way ends like this, and as much starts as may; returns how many are under way then."""
        await self.scene.finish(error_code, where=f"subscription_id = {self.subscription}")
        await self.scene.until_idle(self.orchestrator)
        return await self.active()

    async def rounds(self, count: int, error_code: str = "") -> list[int]:
        return [await self.round(error_code) for _ in range(count)]

    async def row(self) -> tuple[int, int, str | None]:
        """As all know it."""
        await self.orchestrator.step()
        (row,) = await self.scene.sql(f"SELECT * FROM delivery_lanes WHERE subscription_id = {self.subscription}")
        return row["window_size"], row["failures"], row["last_error_code"]


async def test_a_lane_starts_small_and_doubles_while_successes_use_it_up(scene: Scene) -> None:
    lane = await Lane.of(scene, 300)
    assert await lane.rounds(6) == [8, 16, 32, 64, 64, 64]
    assert await lane.row() == (64, 0, None)


async def test_a_lane_that_is_never_full_stays_as_it_is_and_has_no_row(scene: Scene) -> None:
    lane = await Lane.of(scene, 0)
    for _ in range(10):
        await scene.sagas(lane.subscription, 7)
        await lane.round()
    await scene.sagas(lane.subscription, 100)
    assert await lane.round() == 8
    assert await scene.count("delivery_lanes") == 0


async def test_a_lane_that_only_fails_gets_one_attempt_at_a_time_and_what_waits_is_not_counted(scene: Scene) -> None:
    lane = await Lane.of(scene, 100)
    assert await lane.rounds(7, "http_503") == [8, 4, 2, 1, 1, 1, 1]
    assert await lane.row() == (1, 17, "http_503")
    assert await scene.count(SAGAS, "attempt_count = 1") == 17
    assert await scene.count(SAGAS, "attempt_count = 0") == 83


async def test_a_healthy_lane_that_breaks_is_at_one_in_a_few_rounds(scene: Scene) -> None:
    lane = await Lane.of(scene, 400)
    assert (await lane.rounds(4))[-1] == 64
    assert await lane.rounds(3, "timeout") == [1, 1, 1]


async def test_a_lane_that_comes_back_doubles_from_one_and_never_bursts(scene: Scene) -> None:
    lane = await Lane.of(scene, 300)
    await lane.rounds(6, "timeout")
    assert await lane.rounds(8) == [2, 4, 8, 16, 32, 64, 64, 64]
    assert await lane.row() == (64, 0, "timeout")


async def test_a_lane_with_few_sagas_comes_back_too(scene: Scene) -> None:
    """Nothing waits behind them, so that its window is never full; still it gets as wide as at first."""
    lane = await Lane.of(scene, 17)
    await lane.rounds(6, "timeout")
    for _ in range(8):
        await lane.round()
        await scene.sagas(lane.subscription, 1)
    window, failures, _ = await lane.row()
    assert (window, failures) == (8, 0)


async def test_a_bad_lane_takes_nothing_from_a_good_one(scene: Scene) -> None:
    bad = await Lane.of(scene, 200)
    good = Lane(scene, await scene.subscription(), bad.orchestrator)
    await scene.sagas(good.subscription, 300)
    for _ in range(6):
        await scene.finish("timeout", where=f"subscription_id = {bad.subscription}")
        await good.round()
    assert await good.active() == 64
    assert await bad.active() == 1


async def test_jobs_that_workers_give_back_make_no_window_wider(scene: Scene) -> None:
    """They have more of this lane than they can send: more of it would only be carried to them and back."""
    lane = await Lane.of(scene, 300)
    await lane.round()
    first = await scene.database.value(f"SELECT MIN(id) FROM {JOBS}")
    await scene.sql(f"UPDATE {JOBS} SET lease_until = '2100-01-01' WHERE id = {first}")
    for _ in range(4):
        await scene.finish(where=f"id <> {first}")
        await scene.until_idle(lane.orchestrator)
    assert await lane.active() == 8
    await scene.sql(f"UPDATE {JOBS} SET lease_until = created_at WHERE id = {first}")
    await lane.orchestrator.step()
    assert (await lane.rounds(3))[-1] > 8


async def test_a_restart_forgets_nothing(scene: Scene) -> None:
    lane = await Lane.of(scene, 100)
    await lane.rounds(6, "timeout")
    await lane.row()
    lane.orchestrator = await scene.another(POLICY, LIMITS)
    assert await lane.round("timeout") == 1
    assert await lane.row() == (1, 17, "timeout")


async def test_what_one_orchestrator_learns_the_others_know(scene: Scene) -> None:
    lane = await Lane.of(scene, 100)
    other = await scene.another(POLICY, LIMITS)
    await other.step()
    await lane.rounds(6, "timeout")
    _, failures, _ = await lane.row()
    await scene.finish("timeout")
    await scene.until_idle(other)
    assert await lane.active() == 1
    assert await lane.row() == (1, failures + 1, "timeout")


async def test_what_several_learn_at_once_is_put_together(scene: Scene) -> None:
    """Each has taken in eight failures that the other does not know of."""
    lane = await Lane.of(scene, 100)
    other = await scene.another(POLICY, LIMITS, batch=8)
    lane.orchestrator = await scene.another(POLICY, LIMITS, batch=8)
    await lane.rounds(4)
    await other.step()
    assert await lane.active() >= 16
    await scene.finish("timeout")
    before = (await lane.row())[0]
    # Each takes in eight; then each tells of it.
    await other.step()
    await other.step()
    window, failures, _ = await lane.row()
    assert window <= before // 4
    assert failures >= 16


async def test_a_lane_that_was_held_for_long_learns_its_window_anew(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What has gathered goes out at the pace of a beginner, and then faster."""
    lane = await Lane.of(scene, 200)
    assert (await lane.rounds(4))[-1] == 64
    await scene.sql("UPDATE subscriptions SET paused = true")
    assert await lane.round() == 0
    await scene.sagas(lane.subscription, 300)
    await scene.sql("UPDATE subscriptions SET paused = false")
    with monkeypatch.context() as long_after:
        long_after.setattr(pacing, "SECONDS_UNTIL_RELEARNT", 0.0)
        assert await lane.round() == 8
    assert await lane.rounds(3) == [16, 32, 64]


async def test_a_lane_that_was_held_over_a_restart_learns_its_window_anew(scene: Scene) -> None:
    lane = await Lane.of(scene, 200)
    await lane.rounds(4)
    await lane.row()
    await scene.sql("UPDATE subscriptions SET paused = true")
    assert await lane.round() == 0
    await scene.sql("UPDATE subscriptions SET paused = false")
    await scene.sql("UPDATE delivery_lanes SET updated_at = '2020-01-01'")
    lane.orchestrator = await scene.another(POLICY, LIMITS)
    assert await lane.rounds(2) == [8, 16]


async def test_a_short_hold_changes_nothing(scene: Scene) -> None:
    lane = await Lane.of(scene, 300)
    await lane.rounds(4)
    await scene.sql("UPDATE subscriptions SET paused = true")
    assert await lane.round() == 0
    await scene.sql("UPDATE subscriptions SET paused = false")
    assert await lane.round() == 64


async def test_that_an_endpoint_is_down_and_up_again_is_told_once(scene: Scene, told: list[Notice]) -> None:
    lane = await Lane.of(scene, 100)
    await lane.rounds(8, "http_503")
    await lane.rounds(4)
    heard = [one for one in told if isinstance(one, EndpointDown | EndpointUp)]
    assert heard == [EndpointDown(lane.subscription, 14, "http_503"), EndpointUp(lane.subscription, 18)]


async def test_however_many_lanes_only_fail_a_few_of_them_are_tried_in_one_step(scene: Scene) -> None:
    """Each of them has its turn; what they cost does not grow with their number."""
    lanes = await scene.subscriptions(12)
    for lane in lanes:
        await scene.sagas(lane, 20)
    values = ", ".join(f"({lane}, 1, 20, '2020-01-01', 'timeout')" for lane in lanes)
    await scene.sql(
        "INSERT INTO delivery_lanes (subscription_id, window_size, failures, last_failure_at, last_error_code)"
        f" VALUES {values}"
    )
    one = await scene.another(POLICY, LIMITS)
    for _ in range(12 // PROBES_AT_ONCE):
        assert (await one.step()).started == PROBES_AT_ONCE
        await scene.finish("timeout")
    await one.step()
    rows = await scene.sql(f"SELECT subscription_id FROM {JOBS} GROUP BY subscription_id")
    assert len(rows) == len(lanes)
