"""What the subscription verifier may ask of the database."""

import datetime
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tidings.db.operations import AuditedOperations
from tidings.errors import NotFound
from tidings.model.endpoint_check import CheckKind, CheckOutcome
from tidings.model.id import is_id
from tidings.model.subscription import Subscription, Verification, subscription_from


@dataclass(frozen=True)
class Check:
    """One call to be made, and its subscription as it is now; secrets and headers are sealed.

    `asked_at` is the server's time: by that of a machine whose clock is wrong, no receiver would believe the call.
    """

    id: int
    subscription_id: int
    kind: CheckKind
    url: str
    challenge: str
    is_open: bool
    callback_url: str
    pending_callback_url: str | None
    active: bool
    verified: bool
    verification: Verification
    secrets: bytes | None
    headers: bytes | None
    timeout_seconds: float | None
    asked_at: datetime.datetime

    @property
    def is_current(self) -> bool:
        """Whether the call is still wanted: a verification of the latest URL, a test of the one in force."""
        if self.kind is CheckKind.TEST:
            return self.is_open and self.active and self.verified and self.url == self.callback_url
        latest = self.pending_callback_url or self.callback_url
        return self.is_open and self.verification is not Verification.NONE and self.url == latest


@dataclass(frozen=True)
class Verdict:
    """`outcome` is None while the call has not been made; the rest is told of tests only."""

    outcome: CheckOutcome | None
    error_code: str | None = None
    duration_ms: int | None = None


class VerifierOperations(AuditedOperations):
    async def subscription_to_judge(self, id: int) -> Subscription:
        """Kept from others until the end of the transaction."""
        row = await self._row("subscription_to_judge", id=id) if is_id(id) else None
        if row is None:
            raise NotFound(f"There is no subscription {id}.", "`tidings subscriptions list` shows those there are.")
        return subscription_from(row)

    async def put_in_force(self, id: int, url: str) -> bool:
        """Only if it is still the URL that was last asked for."""
        return await self._run("put_in_force", id=id, url=url) == 1

    async def checks_lately(self, id: int, host: str, kind: CheckKind, seconds: float) -> tuple[int, int]:
        """Of the subscription, and of the host."""
        row = await self._row("checks_lately", id=id, host=host, kind=kind.value, seconds=seconds)
        assert row is not None
        return row["of_subscription"], row["of_host"]

    async def outdate_challenges(self, id: int) -> None:
        await self._run("outdate_challenges", id=id)

    async def forget_checks(self, id: int, seconds: float) -> None:
        await self._run("forget_checks", id=id, seconds=seconds)

    async def insert_check(
        self, subscription_id: int, kind: CheckKind, url: str, host: str, challenge: str, lifetime: float
    ) -> int:
        row = await self._row(
            "insert_check",
            subscription_id=subscription_id,
            kind=kind.value,
            url=url,
            host=host,
            challenge=challenge,
            lifetime=lifetime,
        ) or await self._row("inserted_id")
        assert row is not None
        return int(row["id"])

    async def submit_task(self, biz_type: str, biz_key: str, payload: Mapping[str, Any], max_retries: int) -> None:
        text = json.dumps(dict(payload))
        await self._run("submit_task", biz_type=biz_type, biz_key=biz_key, payload=text, max_retries=max_retries)

    async def check_to_run(self, id: int) -> Check | None:
        row = await self._row("check_to_run", id=id)
        if row is None:
            return None
        truths = {name: bool(row[name]) for name in ("is_open", "active", "verified")}
        kinds = {"kind": CheckKind(row["kind"]), "verification": Verification(row["verification"])}
        return Check(**{**row, **truths, **kinds})

    async def put_in_force_if_current(self, check: Check) -> bool:
        """Only if URL, challenge and way of verification are still the ones that were asked."""
        matched = await self._run(
            "put_in_force_if_current",
            id=check.subscription_id,
            url=check.url,
            mode=check.verification.value,
            check_id=check.id,
            challenge=check.challenge,
        )
        return matched == 1

    async def finish_check(self, id: int, verdict: Verdict) -> None:
        assert verdict.outcome is not None
        await self._run(
            "finish_check",
            id=id,
            outcome=verdict.outcome.value,
            error_code=verdict.error_code,
            duration_ms=verdict.duration_ms,
        )

    async def verdict(self, id: int) -> Verdict:
        row = await self._row("verdict", id=id)
        if row is None:
            return Verdict(CheckOutcome.OUTDATED)
        outcome = CheckOutcome(row["outcome"]) if row["outcome"] else None
        return Verdict(outcome, row["error_code"], row["duration_ms"])
