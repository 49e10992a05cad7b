"""One lease cleaner: a step resets leases that have expired, and fails jobs that were reset too often.

It waits a little after every new connection, so that workers which lost the database at the same time can report first.
"""

import secrets
import time
from dataclasses import dataclass

from tidings.db.engine import Engine
from tidings.decisions.leasing import is_poisoned
from tidings.roles.cleaner.operations import CleanerOperations, StaleLease
from tidings.telemetry.bus import tell
from tidings.telemetry.notices import LeaseExpired, LeaseReset

BATCH = 500
SECONDS_BEFORE_THE_FIRST = 5.0


@dataclass(frozen=True)
class Cleaned:
    """How many leases one step ended."""

    reset: int = 0
    failed: int = 0

    @property
    def did_work(self) -> bool:
        return bool(self.reset or self.failed)


class Cleaner:
    """`engine` is one of the role lease_cleaner."""

    def __init__(
        self,
        engine: Engine,
        max_lease_resets: int,
        *,
        batch: int = BATCH,
        patience: float = SECONDS_BEFORE_THE_FIRST,
    ) -> None:
        self._engine = engine
        self._max_lease_resets = max_lease_resets
        self._batch = batch
        self._patience = patience

    async def step(self) -> Cleaned:
        """Safe to run in any number at once: a lease that one has locked the others pass over."""
        stale = await CleanerOperations.step(self._engine, self._clean)
        for lease in stale:
            notice = LeaseExpired if self._is_poisoned(lease) else LeaseReset
            tell(notice(lease.saga_id, lease.job_id, lease.worker_id, str(lease.lease_until), lease.lease_resets + 1))
        failed = sum(map(self._is_poisoned, stale))
        return Cleaned(reset=len(stale) - failed, failed=failed)

    async def look(self) -> bool:
        """Whether a step would find something; one statement."""
        return await CleanerOperations.alone(self._engine, CleanerOperations.has_stale)

    async def _clean(self, operations: CleanerOperations) -> list[StaleLease]:
        # Asked in here: only now it is known whether the connection had to be made anew.
        if time.monotonic() < self._engine.connected_at + self._patience:
            return []
        stale = await operations.stale_leases(self._batch)
        token = secrets.randbits(63)
        await operations.reset_leases([one.job_id for one in stale if not self._is_poisoned(one)], token)
        await operations.expire_leases([one.job_id for one in stale if self._is_poisoned(one)], token)
        return stale

    def _is_poisoned(self, lease: StaleLease) -> bool:
        return is_poisoned(lease.lease_resets, self._max_lease_resets)
