"""Writes down what a key was refused, and which addresses try keys: a few of each, however many there are."""

from contextlib import suppress

from tidings.api.context import Api
from tidings.api.throttle import Throttle
from tidings.errors import TidingsError
from tidings.model.key import Caller
from tidings.roles.key_checker.operations import KeyCheckOperations

MOST_A_MINUTE = 10
_LONGEST_SUBJECT = 300


class Denials:
    def __init__(self, api: Api) -> None:
        self._api = api
        self._written = Throttle(MOST_A_MINUTE)

    async def denied(self, caller: Caller, method: str, path: str) -> None:
        """A caller whom we know asked for what their key does not allow."""
        scopes = " ".join(sorted(caller.scopes))
        await self._write(caller.actor, "request.denied", f"{method} {path}", {"scopes": scopes})

    async def throttled(self, address: str) -> None:
        """An address tried so many keys in vain that it has to wait."""
        await self._write(f"address:{address}", "address.throttled", "keys", {})

    async def _write(self, actor: str, action: str, subject: str, detail: dict[str, str]) -> None:
        if self._written.holds(actor):
            return
        self._written.failed(actor)
        # The answer stands, whether or not this can be written.
        with suppress(TidingsError):
            await self._api.as_role(
                "key_checker",
                lambda engine: KeyCheckOperations.step(
                    engine, lambda operations: operations.audit(actor, action, subject[:_LONGEST_SUBJECT], detail)
                ),
            )
