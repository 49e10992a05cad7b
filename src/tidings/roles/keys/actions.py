"""Makes, lists and revokes keys. Each change is one transaction together with its row in the audit log."""

import secrets
from dataclasses import dataclass

from tidings.db.engine import Engine
from tidings.decisions.keys import LONGEST_KEY, PUBLIC_IDS, SECRET_BYTES, hash_of, key_text, public_id_of, scopes_text
from tidings.errors import InputRefused, NotFound
from tidings.model.key import NewKey, Scope
from tidings.roles.keys.operations import KeyOperations, StoredKey

FIRST_ADMIN = NewKey("first admin key", frozenset({Scope.ADMIN}), None, None)


@dataclass(frozen=True, repr=False)
class Made:
    """The key is never shown again."""

    key: str
    stored: StoredKey


async def add(engine: Engine, new: NewKey, actor: str) -> Made:
    # Not run again by itself: after a connection lost in COMMIT that might make a second one.
    async with engine.transaction() as transaction:
        return await _add(KeyOperations(transaction, engine.dialect), _new_key(), new, actor)


async def add_first(engine: Engine, actor: str) -> Made | None:
    """An admin key, if there has never been any key."""
    async with engine.transaction() as transaction:
        operations = KeyOperations(transaction, engine.dialect)
        if await operations.keys(limit=1):
            return None
        return await _add(operations, _new_key(), FIRST_ADMIN, actor)


async def ensure(engine: Engine, key: str, actor: str) -> bool:
    """An admin key that the operator chose is known from now on; False if it was, also if it was revoked since."""
    if not 0 < len(key) <= LONGEST_KEY:
        raise InputRefused(f"A key has 1 to {LONGEST_KEY} characters.", "Change TIDINGS_ADMIN_KEY.", field="admin_key")

    async def work(operations: KeyOperations) -> bool:
        if await operations.key(public_id_of(key)):
            return False
        await _add(operations, key, FIRST_ADMIN, actor)
        return True

    return await KeyOperations.step(engine, work)


async def revoke(engine: Engine, public_id: str, actor: str) -> tuple[StoredKey, bool]:
    """The key, and whether it was valid until now."""

    async def work(operations: KeyOperations) -> tuple[StoredKey, bool]:
        done = await operations.revoke(public_id)
        found = await operations.key(public_id)
        if found is None:
            raise NotFound(f"There is no key {public_id!r}.", "`tidings keys list` shows those there are.")
        if done:
            await operations.audit(actor, "key.revoked", f"key:{public_id}", {})
        return found, done

    return await KeyOperations.step(engine, work)


async def listed(engine: Engine, limit: int, after: int = 0) -> list[StoredKey]:
    return await KeyOperations.step(engine, lambda operations: operations.keys(limit, after))


async def _add(operations: KeyOperations, key: str, new: NewKey, actor: str) -> Made:
    public_id = public_id_of(key)
    await operations.insert(public_id, hash_of(await operations.installation_id(), key), new, actor)
    detail = {"name": new.name, "scopes": scopes_text(new.scopes), "event_domain": new.event_domain}
    await operations.audit(actor, "key.created", f"key:{public_id}", detail)
    stored = await operations.key(public_id)
    assert stored is not None
    return Made(key, stored)


def _new_key() -> str:
    return key_text(secrets.randbelow(PUBLIC_IDS), secrets.token_bytes(SECRET_BYTES))
