"""What the session keeper may ask of the database."""

from dataclasses import dataclass

from tidings.db.operations import Operations
from tidings.decisions.keys import read_scopes
from tidings.model.key import Caller
from tidings.telemetry.asking import asked

SECONDS_IDLE = 30 * 60.0
SECONDS_AT_MOST = 12 * 3600.0
SECONDS_BETWEEN_MARKS = 60.0


@dataclass(frozen=True)
class SignedIn:
    """Who it is, and under which name their key is kept."""

    caller: Caller
    key_name: str
    is_stale: bool


class SessionOperations(Operations):
    async def insert(self, session_hash: str, public_id: str) -> None:
        await self._run("insert_session", session_hash=session_hash, public_id=public_id)

    async def session(self, session_hash: str) -> SignedIn | None:
        row = await self._row(
            "session",
            session_hash=session_hash,
            seconds=SECONDS_BETWEEN_MARKS,
            idle=SECONDS_IDLE,
            absolute=SECONDS_AT_MOST,
        )
        if row is None:
            return None
        caller = Caller(row["public_id"], read_scopes(row["scopes"]), row["event_domain"])
        return SignedIn(caller, row["name"], bool(row["is_stale"]))

    async def mark_seen(self, session_hash: str) -> None:
        await self._run("mark_seen", session_hash=session_hash)

    async def remove(self, session_hash: str) -> bool:
        return await self._run("remove_session", session_hash=session_hash) == 1

    async def remove_idle(self) -> None:
        await self._run("remove_idle", idle=SECONDS_IDLE)

    async def audit(self, caller: Caller, action: str) -> None:
        await self._run("audit", actor=caller.actor, action=action, subject=f"key:{caller.public_id}", **asked())
