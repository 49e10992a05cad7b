"""What the key admin may ask of the database."""

import datetime
from dataclasses import dataclass

from tidings.db.operations import AuditedOperations
from tidings.db.session import Row
from tidings.decisions.keys import read_scopes, scopes_text
from tidings.model.key import NewKey, Scope


@dataclass(frozen=True)
class StoredKey:
    id: int
    public_id: str
    name: str
    scopes: frozenset[Scope]
    event_domain: str | None
    created_by: str
    created_at: datetime.datetime
    last_used_at: datetime.datetime | None
    expires_at: datetime.datetime | None
    revoked_at: datetime.datetime | None
    is_valid: bool


class KeyOperations(AuditedOperations):
    async def installation_id(self) -> str:
        row = await self._row("installation_id")
        assert row is not None
        return str(row["installation_id"])

    async def insert(self, public_id: str, key_hash: bytes, new: NewKey, created_by: str) -> None:
        await self._run(
            "insert_key",
            public_id=public_id,
            key_hash=key_hash,
            name=new.name,
            scopes=scopes_text(new.scopes),
            event_domain=new.event_domain,
            created_by=created_by,
            lifetime=new.lifetime,
        )

    async def key(self, public_id: str) -> StoredKey | None:
        row = await self._row("key", public_id=public_id)
        return _stored(row) if row else None

    async def keys(self, limit: int, after: int = 0) -> list[StoredKey]:
        return [_stored(row) for row in await self._rows("keys_after", after=after, limit=limit)]

    async def revoke(self, public_id: str) -> bool:
        return await self._run("revoke_key", public_id=public_id) == 1


def _stored(row: Row) -> StoredKey:
    fields = {name: row[name] for name in StoredKey.__dataclass_fields__}
    return StoredKey(**{**fields, "scopes": read_scopes(row["scopes"]), "is_valid": bool(row["is_valid"])})
