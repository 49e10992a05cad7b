"""Hypothesis drives the product's real steps, in orders that nobody would think of, beside a plain model of them."""

import asyncio
from collections.abc import Awaitable, Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tests.chaos.plants import planted
from tests.model.installation_steps import Steps
from tests.model.plain import Plain, PlainSubscription
from tests.support.database import Database

pytestmark = pytest.mark.slow

PLACES = st.integers(0, 1)


class Deliveries(RuleBasedStateMachine):
    """Two workers, two subscriptions, a handful of events."""

    runner: asyncio.Runner
    steps: Steps

    def __init__(self) -> None:
        super().__init__()
        self.plain = Plain()
        self.held: list[list[tuple[tuple[int, int, int], int, int]]] = [[], []]
        self.events = 0

    def do(self, work: Awaitable[Any]) -> Any:
        async def run() -> Any:
            return await work

        return self.runner.run(run())

    @initialize(subscriptions=st.integers(1, 2))
    def begin(self, subscriptions: int) -> None:
        self.do(self.steps.begin(subscriptions))
        self.plain.subscriptions = {number: PlainSubscription() for number in range(subscriptions)}

    @precondition(lambda self: self.events < 4)
    @rule()
    def publish(self) -> None:
        self.do(self.steps.publish(self.events))
        self.plain.unrouted.append(self.events)
        self.events += 1

    @rule()
    def route(self) -> None:
        self.do(self.steps.router.step())
        self.plain.route()

    @rule()
    def orchestrate(self) -> None:
        self.do(self.steps.orchestrator.step())
        self.plain.orchestrate()

    @rule(place=PLACES)
    def lease(self, place: int) -> None:
        self.do(self.steps.lease(place))
        self.held[place] += self.plain.lease()

    @precondition(lambda self: any(self.held))
    @rule(place=PLACES, which=st.integers(0, 20), went_well=st.booleans())
    def answer(self, place: int, which: int, went_well: bool) -> None:
        place = place if self.held[place] else 1 - place
        chosen, attempt, _ = self.held[place][which % len(self.held[place])]
        # Those of one attempt look the same from outside: the oldest of them is answered.
        alike = [one for one in self.held[place] if (*one[0][:2], one[1]) == (*chosen[:2], attempt)]
        name, number, lease = alike[0]
        self.held[place].remove(alike[0])
        self.do(self.steps.answer(place, name[0], name[1], number, went_well))
        self.plain.report(name, number, lease, went_well)

    @rule(place=PLACES)
    def crash(self, place: int) -> None:
        self.do(self.steps.crash(place))
        self.held[place].clear()

    @rule()
    def expire(self) -> None:
        self.do(self.steps.expire())
        self.plain.expire()

    @rule()
    def clean(self) -> None:
        self.do(self.steps.cleaner.step())
        self.plain.clean()

    @rule()
    def make_due(self) -> None:
        self.do(self.steps.make_due())
        self.plain.make_due()

    @rule()
    def requeue(self) -> None:
        self.do(self.steps.requeue())
        self.plain.requeue()

    @rule(is_paused=st.booleans())
    def pause(self, is_paused: bool) -> None:
        self.do(self.steps.set(0, f"paused = {str(is_paused).lower()}"))
        self.plain.subscriptions[0].is_paused = is_paused

    @rule(limit=st.integers(1, 3))
    def change_limit(self, limit: int) -> None:
        self.do(self.steps.set(0, f"max_retry_limit = {limit}"))
        self.plain.subscriptions[0].limit = limit

    @invariant()
    def the_tables_say_what_the_model_says(self) -> None:
        if self.plain.subscriptions:
            assert self.do(self.steps.told()) == self.plain.told()

    def teardown(self) -> None:
        for place in range(len(self.steps.workers)):
            self.do(self.steps.crash(place))


# Without `explain`, which traces every line: three times the time, for a hint.
PHASES = tuple(phase for phase in Phase if phase is not Phase.explain)


def drive(database: Database, examples: int, steps: int, phases: Sequence[Phase] = PHASES) -> None:
    with asyncio.Runner() as runner:
        made = runner.run(Steps.open(database))
        machine = type("On", (Deliveries,), {"runner": runner, "steps": made})
        try:
            run_state_machine_as_test(
                machine,
                settings=settings(
                    max_examples=examples,
                    stateful_step_count=steps,
                    deadline=None,
                    # The same in every ordinary run; others on demand.
                    derandomize=examples < 1_000,
                    database=None,
                    phases=phases,
                    suppress_health_check=[*HealthCheck],
                ),
            )
        finally:
            runner.run(made.close())
            runner.run(database.empty())


@pytest.mark.parametrize(
    ("examples", "steps"),
    [(100, 30), pytest.param(1_000, 50, marks=[pytest.mark.full, pytest.mark.timeout(3600)])],
)
def test_the_steps_do_what_the_model_says(migrated: Database, examples: int, steps: int) -> None:
    drive(migrated, examples, steps)


@pytest.mark.quick_on("postgresql")
@pytest.mark.parametrize(
    "name",
    [
        "buried-too-early",
        *(
            pytest.param(name, marks=[pytest.mark.full, pytest.mark.timeout(600)])
            for name in ("report-without-token", "counted-twice", "result-not-marked", "expires-for-ever")
        ),
    ],
)
def test_a_planted_bug_makes_the_tables_say_something_else(migrated: Database, name: str) -> None:
    with planted(name), pytest.raises(AssertionError):
        drive(migrated, 200, 50, [Phase.generate])
