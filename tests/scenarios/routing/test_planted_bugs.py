"""A router with a planted mistake is caught by the stepped histories: the tests can see what they are there to see."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import pytest

from tests.scenarios.routing.seeds import chosen_seed, repeat
from tests.scenarios.routing.stage import ROUTER, set_up
from tests.scenarios.routing.stepping import theatre
from tests.support.database import Database
from tidings.decisions import holes as truth
from tidings.decisions.holes import Chunk, Holes, InFlight, Range, Reading, Settled
from tidings.roles.router import router as router_module
from tidings.roles.router import witness as witness_module
from tidings.roles.router.router import Router

HISTORIES = 60
BATCH = 400

Plant = Callable[[pytest.MonkeyPatch], None]


def keep_only_the_last_id(patch: pytest.MonkeyPatch) -> None:
    def no_gaps(position: int, ids: Iterable[int]) -> list[Range]:
        return []

    patch.setattr(router_module, "gaps", no_gaps)


def forget_holes_without_proof(patch: pytest.MonkeyPatch) -> None:
    def by_nobody(holes: Holes, seen: InFlight) -> Holes:
        return truth.witnessed(holes, InFlight(frozenset()))

    patch.setattr(witness_module, "witnessed", by_nobody)


def drop_without_reading_again(patch: pytest.MonkeyPatch) -> None:
    def without_ripe_ones(holes: Holes, limit: int) -> Chunk:
        hidden = tuple(replace(one, unread=(), read=one.ranges) if one.is_ripe else one for one in holes)
        return truth.next_chunk(hidden, limit)

    def and_drop_them(holes: Holes, reading: Reading, new: Sequence[Range]) -> Settled:
        settled = truth.settle(holes, reading, new)
        ripe = tuple(hole for one in holes if one.is_ripe for hole in one.ranges)
        kept = tuple(one for one in settled.holes if not one.is_ripe)
        return Settled(kept, settled.removed + ripe, settled.added)

    patch.setattr(router_module, "next_chunk", without_ripe_ones)
    patch.setattr(router_module, "settle", and_drop_them)


@pytest.mark.slow
@pytest.mark.parametrize(
    "plant", [keep_only_the_last_id, forget_holes_without_proof, drop_without_reading_again], ids=lambda p: p.__name__
)
async def test_a_router_with_a_planted_mistake_is_caught(
    engine: Database, monkeypatch: pytest.MonkeyPatch, plant: Plant
) -> None:
    plant(monkeypatch)
    seed = chosen_seed()
    await set_up(engine)
    event_router = await engine.open(ROUTER, size=2)
    async with theatre(engine, lambda: Router(event_router, batch=BATCH)) as stage:
        for number in range(HISTORIES):
            result = await stage.play(seed + number)
            if result.verdict.skipped:
                return
    pytest.fail(f"not one event was lost in {HISTORIES} histories, {repeat(seed)}")
