"""Keeps count of what came of attempts, in the very transaction that takes them in: no chart shows what was undone."""

import secrets
from collections.abc import Sequence

from tidings.decisions.advancing import UNKNOWN_ERROR, Buried
from tidings.decisions.tallying import Tallied, tally
from tidings.model.totals import SLOTS
from tidings.roles.orchestrator.applying import Applied
from tidings.roles.orchestrator.operations import Moment, OrchestratorOperations
from tidings.roles.orchestrator.starting import Started


class Totals:
    """Several orchestrators mostly write to different slots, and so do not wait for each other's commits."""

    def __init__(self) -> None:
        self._slot = secrets.randbelow(SLOTS)

    async def add_applied(self, operations: OrchestratorOperations, applied: Sequence[Applied], now: Moment) -> None:
        results = [Tallied(one.job.result.subscription_id, one.outcome, one.job.duration_ms) for one in applied]
        await operations.add_totals(tally(results, now), self._slot)

    async def add_started(self, operations: OrchestratorOperations, started: Sequence[Started], now: Moment) -> None:
        """Only those that were given up: what became of the others is not known yet."""
        given_up = [
            Tallied(one.saga.subscription_id, Buried(one.saga.final_error_code or UNKNOWN_ERROR), is_attempt=False)
            for one in started
            if one.is_buried
        ]
        await operations.add_totals(tally(given_up, now), self._slot)
