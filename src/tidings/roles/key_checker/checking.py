"""Checks keys, and remembers those that were right for a few seconds: so long a revoked one may still be let in."""

import hashlib
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from tidings.db.engine import Engine
from tidings.decisions.keys import LONGEST_KEY, is_hash_of, public_id_of
from tidings.errors import TidingsError
from tidings.model.key import Caller
from tidings.roles.key_checker.operations import KeyCheckOperations

SECONDS_REMEMBERED = 3.0
SECONDS_BETWEEN_MARKS = 60.0
_MOST_REMEMBERED = 10_000


@dataclass(frozen=True)
class Remembered:
    caller: Caller
    until: float


class KeyChecker:
    """`engine` gives one of the role key_checker."""

    def __init__(self, engine: Callable[[], Awaitable[Engine]]) -> None:
        self._engine = engine
        self._installation_id = ""
        # By hash: a key is not kept anywhere, not even here.
        self._known: dict[bytes, Remembered] = {}

    async def caller(self, key: str) -> Caller | None:
        """Whose key this is; None if nobody's."""
        if not 0 < len(key) <= LONGEST_KEY or not key.isascii():
            return None
        digest = hashlib.sha256(key.encode()).digest()
        if (known := self._known.get(digest)) and known.until > time.monotonic():
            return known.caller
        caller = await self._looked_up(await self.installation_id(), key)
        if caller is not None:
            self._remember(digest, caller)
        return caller

    async def installation_id(self) -> str:
        if not self._installation_id:
            self._installation_id = await KeyCheckOperations.step(
                await self._engine(), KeyCheckOperations.installation_id
            )
        return self._installation_id

    async def _looked_up(self, installation_id: str, key: str) -> Caller | None:
        engine, public_id = await self._engine(), public_id_of(key)
        found = await KeyCheckOperations.step(engine, lambda one: one.key(public_id, SECONDS_BETWEEN_MARKS))
        if not is_hash_of(found.key_hash if found else None, installation_id, key) or found is None:
            return None
        if found.is_stale:
            # Nobody is turned away because this could not be written.
            with suppress(TidingsError):
                await KeyCheckOperations.step(engine, partial(KeyCheckOperations.mark_used, id=found.id))
        return Caller(public_id, found.scopes, found.event_domain)

    def _remember(self, digest: bytes, caller: Caller) -> None:
        now = time.monotonic()
        if len(self._known) >= _MOST_REMEMBERED:
            self._known = {one: known for one, known in self._known.items() if known.until > now}
        self._known[digest] = Remembered(caller, now + SECONDS_REMEMBERED)
