"""Each planted bug is found by the checker in a short story, and the same story without it has nothing wrong in it."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.plants import PLANTS, planted
from tests.chaos.stories import STORIES, told
from tests.support.database import Database

pytestmark = pytest.mark.slow


def by_turns(names: Iterable[str]) -> list[Any]:
    """Each on both engines; in an ordinary run on one of them."""
    engines = ("postgresql", "mariadb")
    return [pytest.param(name, marks=pytest.mark.quick_on(engines[place % 2])) for place, name in enumerate(names)]


@pytest.mark.parametrize("name", by_turns(STORIES))
async def test_a_story_without_a_bug_has_nothing_wrong_in_it(engine: Database, tmp_path: Path, name: str) -> None:
    verdict = await told(name, engine, tmp_path)
    assert verdict.problems == []


@pytest.mark.parametrize("name", by_turns(PLANTS))
async def test_a_planted_bug_is_found(engine: Database, tmp_path: Path, name: str) -> None:
    with planted(name):
        verdict = await told(PLANTS[name].story, engine, tmp_path)
    assert any(PLANTS[name].told in problem for problem in verdict.problems), f"nobody noticed that {PLANTS[name].does}"


def test_there_are_enough_of_them_and_no_story_is_without_one() -> None:
    """At least 15."""
    assert len(PLANTS) >= 15
    assert {plant.story for plant in PLANTS.values()} == set(STORIES)
