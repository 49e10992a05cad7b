"""What the key checker may ask of the database."""

from dataclasses import dataclass

from tidings.db.operations import AuditedOperations
from tidings.decisions.keys import read_scopes
from tidings.model.key import Scope


@dataclass(frozen=True, repr=False)
class ValidKey:
    id: int
    key_hash: bytes
    scopes: frozenset[Scope]
    event_domain: str | None
    is_stale: bool


class KeyCheckOperations(AuditedOperations):
    async def installation_id(self) -> str:
        row = await self._row("installation_id")
        assert row is not None
        return str(row["installation_id"])

    async def key(self, public_id: str, seconds: float) -> ValidKey | None:
        row = await self._row("key", public_id=public_id, seconds=seconds)
        if row is None:
            return None
        hash, scopes = bytes(row["key_hash"]), read_scopes(row["scopes"])
        return ValidKey(row["id"], hash, scopes, row["event_domain"], bool(row["is_stale"]))

    async def mark_used(self, id: int) -> None:
        await self._run("mark_used", id=id)
