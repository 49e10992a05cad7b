"""Begins, looks up and ends sessions. A session's id is known to its browser alone; here only its hash is."""

import hashlib
import secrets

from tidings.db.engine import Engine
from tidings.model.key import Caller
from tidings.roles.sessions.operations import SessionOperations, SignedIn

_ID_BYTES = 32
_LONGEST_ID = 100


async def begin(engine: Engine, caller: Caller, former_id: str = "") -> str:
    """The id of a new session; the one that this browser had before is over."""
    id = secrets.token_urlsafe(_ID_BYTES)

    async def work(operations: SessionOperations) -> None:
        await operations.remove_idle()
        if former_id:
            await operations.remove(hash_of(former_id))
        await operations.insert(hash_of(id), caller.public_id)
        await operations.audit(caller, "console.signed_in")

    await SessionOperations.step(engine, work)
    return id


async def look_up(engine: Engine, id: str, *, is_used: bool) -> SignedIn | None:
    """Who is signed in. `is_used`: a person asks, and not a page that looks again by itself."""
    if not 0 < len(id) <= _LONGEST_ID:
        return None
    session_hash = hash_of(id)
    found = await SessionOperations.step(engine, lambda operations: operations.session(session_hash))
    if found is not None and found.is_stale and is_used:
        await SessionOperations.step(engine, lambda operations: operations.mark_seen(session_hash))
    return found


async def end(engine: Engine, id: str, caller: Caller) -> None:
    async def work(operations: SessionOperations) -> None:
        if await operations.remove(hash_of(id)):
            await operations.audit(caller, "console.signed_out")

    await SessionOperations.step(engine, work)


def hash_of(id: str) -> str:
    return hashlib.sha256(b"tidings session:" + id.encode()).hexdigest()
