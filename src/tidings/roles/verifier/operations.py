"""What the subscription verifier may ask of the database."""

import json
from collections.abc import Mapping
from typing import Any

from tidings.db.operations import Operations
from tidings.model.subscription import Subscription, subscription_from


class VerifierOperations(Operations):
    async def subscription_to_judge(self, id: int) -> Subscription | None:
        row = await self._row("subscription_to_judge", id=id)
        return subscription_from(row) if row else None

    async def put_in_force(self, id: int, url: str) -> bool:
        """Only if it is still the URL that was last asked for."""
        return await self._run("put_in_force", id=id, url=url) == 1

    async def record(self, actor: str, action: str, id: int, detail: Mapping[str, Any]) -> None:
        await self._run(
            "record", actor=actor, action=action, subject=f"subscription:{id}", detail=json.dumps(dict(detail))
        )
