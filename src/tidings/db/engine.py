"""One role's way to its database: sessions kept ready, transactions, and steps that are run again when the server asks.

A step is a whole transaction; a transient error re-runs all of it, which is safe because decisions are pure.
"""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from importlib import import_module
from typing import TypeVar

from tidings.db.address import Address, read_address
from tidings.db.dialect import DIALECTS, Dialect
from tidings.db.names import Names
from tidings.db.session import Server, Session
from tidings.db.transaction import Transaction
from tidings.errors import (
    DatabaseError,
    OutcomeUnknown,
    ServerUnreachable,
    TransientFailure,
)
from tidings.telemetry.bus import tell
from tidings.telemetry.notices import ServerAwaited, StepRetried

T = TypeVar("T")
_ATTEMPTS = 6
_FIRST_PAUSE = 0.05


class Engine:
    """At most `size` sessions at once, made when needed; a session that was lost is never used again.

    `connections` counts those that were ever made: a new number tells that one had to be made. `connected_at` is when
    the newest one was, by the monotonic clock.
    """

    def __init__(
        self,
        dial: Callable[[], Awaitable[Session]],
        first: Session,
        *,
        owner: str,
        size: int,
        is_shared: bool = False,
    ) -> None:
        self._dial = dial
        self._is_shared = is_shared
        self._idle: list[Session] = [first]
        self._room = asyncio.Semaphore(size)
        self._closed = False
        self.connections = 1
        self.connected_at = time.monotonic()
        self.owner = owner
        self.server: Server = first.server
        self.dialect: Dialect = DIALECTS[first.server.dialect]

    async def step(self, work: Callable[[Transaction], Awaitable[T]]) -> T:
        """Runs `work` in one transaction, and all of it again after a transient error."""
        return await self._again_and_again(self._in_transaction, work)

    async def alone(self, work: Callable[[Transaction], Awaitable[T]]) -> T:
        """Runs a single statement without a transaction around it, and again after a transient error.

        Our own logins bring along what the planner must know; any other gets it with a transaction.
        """
        return await (self.step(work) if self._is_shared else self._again_and_again(self._without_transaction, work))

    @property
    def can_notify(self) -> bool:
        return self.dialect.notify is not None

    async def notify(self, channels: Iterable[str]) -> None:
        """Tells whoever listens, in a transaction of its own; nobody, where the engine has no notifications."""
        if self.dialect.notify is None:
            return
        async with self.bare_session() as session:
            await session.command(f"/* {self.owner}.notify */ {'; '.join(map(self.dialect.notify, channels))}")

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Transaction]:
        """One transaction, not run again. A connection lost in COMMIT is `OutcomeUnknown`."""
        async with self._room:
            session = await self._begun()
            transaction = Transaction(session)
            try:
                yield transaction
                transaction.refuse_if_spoilt()
                await self._commit(session)
            except BaseException:
                await self._undo(session)
                raise
            finally:
                self._put_back(session)

    @asynccontextmanager
    async def bare_session(self) -> AsyncIterator[Session]:
        """A session without a transaction, for what must not or need not have one."""
        async with self._room:
            session = self._idle.pop() if self._idle else await self._connect()
            try:
                yield session
            finally:
                self._put_back(session)

    async def own_session(self) -> Session:
        """A session beside the others, outside of any transaction; the caller closes it."""
        return await self._connect()

    async def twin(self) -> "Engine":
        """The same way to the database with one session, for another thread and its loop; the caller closes it."""
        return Engine(self._dial, await self._dial(), owner=self.owner, size=1, is_shared=self._is_shared)

    async def close(self) -> None:
        """Closes what is idle now; a session that is still in use is closed when it comes back."""
        self._closed = True
        while self._idle:
            await self._idle.pop().close()

    async def _in_transaction(self, work: Callable[[Transaction], Awaitable[T]]) -> T:
        async with self.transaction() as transaction:
            return await work(transaction)

    async def _without_transaction(self, work: Callable[[Transaction], Awaitable[T]]) -> T:
        # As `bare_session`, but idle roles come by here many times a second, and a generator each time is dear.
        async with self._room:
            session = self._idle.pop() if self._idle else await self._connect()
            try:
                return await work(Transaction(session))
            finally:
                self._put_back(session)

    async def _again_and_again(
        self,
        once: Callable[[Callable[[Transaction], Awaitable[T]]], Awaitable[T]],
        work: Callable[[Transaction], Awaitable[T]],
    ) -> T:
        for attempt in range(1, _ATTEMPTS):
            try:
                return await once(work)
            except TransientFailure as error:
                tell(StepRetried(self.owner, attempt, error.what))
                await asyncio.sleep(random.uniform(0.5, 1) * _FIRST_PAUSE * 2**attempt)
        return await once(work)

    async def _connect(self) -> Session:
        session = await self._dial()
        self.connections += 1
        self.connected_at = time.monotonic()
        return session

    async def _begun(self) -> Session:
        while self._idle:
            try:
                return await self._begin(self._idle.pop())
            except TransientFailure:
                # It was lost while idle. Nothing has been asked yet, so another one may take its place.
                continue
        return await self._begin(await self._connect())

    async def _begin(self, session: Session) -> Session:
        try:
            await session.command(f"/* {self.owner}.begin */ {self.dialect.begin}")
        except BaseException:
            session.abandon()
            raise
        return session

    async def _commit(self, session: Session) -> None:
        try:
            await session.command(f"/* {self.owner}.commit */ COMMIT")
        except TransientFailure as error:
            if session.is_lost:
                raise OutcomeUnknown(
                    f"The connection was lost in COMMIT; whether it took effect is not known. {error.what}"
                ) from error
            raise

    async def _undo(self, session: Session) -> None:
        if session.is_lost:
            return
        try:
            await session.command("ROLLBACK")
        except DatabaseError:
            session.abandon()  # and the error that led here is the one to tell
        except BaseException:
            session.abandon()
            raise

    def _put_back(self, session: Session) -> None:
        if session.is_lost or self._closed:
            session.abandon()
        else:
            self._idle.append(session)


async def open_engine(
    url: str,
    *,
    owner: str,
    names: Names,
    group: str = "",
    schema: str | None = None,
    patience: float = 0,
    size: int = 2,
) -> Engine:
    """Connects as `owner` (a role's name), trying for `patience` seconds while nobody answers.

    With `group` each session acts as that role. `schema` defaults to the installation's own.
    """
    address = read_address(url)
    used = names.schema if schema is None else schema

    async def connect() -> Session:
        return await _patiently(address, patience, application=f"tidings {owner}", schema=used, group=group)

    return Engine(connect, await connect(), owner=owner, size=size, is_shared=bool(group))


async def _patiently(address: Address, patience: float, **how: str) -> Session:
    connect = _connector(address.family)
    started = time.monotonic()
    pause = _FIRST_PAUSE
    while True:
        try:
            return await _somewhere(connect, address, **how)
        except (ServerUnreachable, TransientFailure) as error:
            waited = time.monotonic() - started
            if waited >= patience:
                raise _gave_up(address, error, waited) from error
            tell(ServerAwaited(str(address), error.what, round(waited, 1)))
        await asyncio.sleep(min(random.uniform(0.5, 1) * pause, patience - waited))
        pause = min(pause * 2, 2)


async def _somewhere(connect: Callable[..., Awaitable[Session]], address: Address, **how: str) -> Session:
    """At the first of its places where a server is that takes us and takes writes."""
    failures: list[ServerUnreachable | TransientFailure] = []
    for one in address.each():
        try:
            return await connect(one, **how)
        except (ServerUnreachable, TransientFailure) as error:
            failures.append(error)
    if len(failures) == 1:
        raise failures[0]
    raise ServerUnreachable("; ".join(failure.what for failure in failures)) from failures[-1]


def _connector(family: str) -> Callable[..., Awaitable[Session]]:
    """Only the driver that is used is loaded: commands start twice as fast."""
    connect: Callable[..., Awaitable[Session]] = import_module(f"tidings.db.{family}").connect
    return connect


def _gave_up(address: Address, error: ServerUnreachable | TransientFailure, waited: float) -> ServerUnreachable:
    tried = f" (tried for {waited:.0f} s)" if waited >= 1 else ""
    return ServerUnreachable(
        f"{error.what}{tried}",
        f"Is a server running at {' or '.join(map(str, address.places))}, and does it let us in?",
    )
