"""Producers: seeded streams of transactions of every shape, which advance one statement at a time.

Whoever drives them decides when the next statement comes: a scheduler in stepped histories, chance in free runs.
"""

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Protocol

from tests.scenarios.routing import words as say
from tests.scenarios.routing.journal import DATABASE_ERRORS, Journal, code_of
from tests.scenarios.routing.words import Words
from tests.support.sessions import Session, connect
from tests.support.waiting import eventually

RECONNECT_WITHIN = 60


class Obstacle(Protocol):
    """Something that a statement meets after its ids were drawn and before its rows exist."""

    expression: str

    async def met(self, backend: int) -> None: ...

    async def lift(self) -> None: ...


class Unfinished(Exception):
    """The transaction was spoilt by an error or a kill; the session is good for nothing more."""


@dataclass(frozen=True)
class Left:
    """A prepared transaction that waits for somebody to finish it."""

    tag: str
    ids: tuple[int, ...]


@dataclass(frozen=True)
class Mix:
    """How often producers do what; chances of a transaction, and weights of its statements."""

    single: float = 0.2
    prepared: float = 0.15
    left: float = 0.5
    rollback: float = 0.2
    vanish: float = 0.03
    killed: float = 0.04
    statements: int = 3
    rows: int = 5
    one: int = 20
    several: int = 15
    selected: int = 12
    copied: int = 8
    savepoint: int = 14
    duplicate: int = 8
    ignored: int = 8
    hung: int = 18


class Producer:
    """One producer with one session, opened when needed and opened again when it was lost."""

    def __init__(
        self,
        name: str,
        url: str,
        words: Words,
        chance: Random,
        journal: Journal,
        obstacle: Callable[[], Awaitable[Obstacle]],
        left: list[Left],
        *,
        domains: Sequence[str] = ("default",),
        mix: Mix | None = None,
    ) -> None:
        self.name, self.journal = name, journal
        self._url, self._words, self._chance = url, words, chance
        self._obstacle, self._left, self._domains = obstacle, left, domains
        self._mix = mix or Mix()
        self.enough = False  # the transaction at hand is the last one
        self._numbers = itertools.count(1)
        self._session: Session | None = None
        self._backend = 0
        self._written: list[int] = []

    async def transactions(self) -> AsyncIterator[int]:
        """Yields after each statement: how many events have been written by it, as far as is known."""
        introduced = False
        while not self.enough:
            try:
                if not introduced:
                    await self._introduce()
                    introduced = True
                    yield 1
                if self._left and self._chance.random() < 0.3:
                    await self._finish_left(self._left.pop(0))
                    yield 0
                async for count in self._transaction(f"{self.name}-{next(self._numbers)}"):
                    yield count
            except Unfinished:
                await self.leave()
                yield 0

    async def one_long_transaction(self) -> AsyncIterator[int]:
        """One transaction that stays open until it is enough, and starts anew when the server was killed."""
        while not self.enough:
            tag, self._written = f"{self.name}-{next(self._numbers)}", []
            try:
                await self._run("begin", self._words.begin(tag, to_prepare=False))
                yield 0
                while not self.enough:
                    if not self._written or self._chance.random() < 0.2:
                        await self._insert("long", say.insert(self._domain(), tag, 1))
                    else:
                        await self._rows("SELECT 1")
                    yield 1
                async for _ in self._ended(tag):
                    yield 0
            except Unfinished:
                await self.leave()
                yield 0

    async def _introduce(self) -> None:
        """An external id of its own, committed, so that its second use never waits for anybody."""
        tag, sent, self._written = f"{self.name}-0", time.time(), []
        await self._insert("single", self._words.insert_ignored("own", tag, self.name))
        self._committed(tag, sent)

    async def leave(self) -> None:
        """Ends the session without a word, whatever it was doing."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _transaction(self, tag: str) -> AsyncIterator[int]:
        self._written, mix, chance = [], self._mix, self._chance
        if chance.random() < mix.single:
            sent = time.time()
            await self._insert("single", say.insert(self._domain(), tag, chance.choice([1, 1, mix.rows])))
            self._committed(tag, sent)
            yield len(self._written)
            return
        to_prepare = chance.random() < mix.prepared
        await self._run("begin", self._words.begin(tag, to_prepare=to_prepare))
        yield 0
        for _ in range(chance.randint(1, mix.statements)):
            async for count in self._statement(tag, to_prepare):
                yield count
            if chance.random() < mix.killed:
                await self._kill()
        if chance.random() < mix.vanish:
            self.journal.did("vanish")
            raise Unfinished
        async for _ in self._prepared(tag) if to_prepare else self._ended(tag):
            yield 0

    async def _statement(self, tag: str, to_prepare: bool) -> AsyncIterator[int]:
        mix, chance = self._mix, self._chance
        kinds: dict[str, int] = {"one": mix.one, "several": mix.several, "selected": mix.selected, "hung": mix.hung}
        kinds |= {"ignored": mix.ignored} | ({"copied": mix.copied} if self._words.copies else {})
        if not to_prepare:  # a branch of MariaDB and a savepoint do not go together
            kinds |= {"savepoint": mix.savepoint, "duplicate": mix.duplicate}
        kind = chance.choices([*kinds], [*kinds.values()])[0]
        before, domain = len(self._written), self._domain()
        match kind:
            case "one":
                await self._insert(kind, say.insert(domain, tag, 1))
            case "several":
                await self._insert(kind, say.insert(domain, tag, chance.randint(2, mix.rows)))
            case "selected":
                await self._insert(kind, say.insert_select(domain, tag, chance.randint(2, mix.rows + 2)))
            case "ignored":
                await self._insert(kind, self._words.insert_ignored("own", tag, self.name))
            case "duplicate":
                await self._duplicate(tag)
            case "savepoint":
                async for _ in self._savepoint(domain, tag):
                    yield 0
            case "hung":
                async for _ in self._hung(domain, tag):
                    yield 0
            case "copied":
                async for _ in self._copied(domain, tag):
                    yield 0
        yield len(self._written) - before

    async def _savepoint(self, domain: str, tag: str) -> AsyncIterator[None]:
        await self._run("savepoint", "SAVEPOINT part")
        yield
        before = len(self._written)
        await self._insert("inside a savepoint", say.insert(domain, tag, 2))
        yield
        if self._chance.random() < 0.7:
            await self._run("rollback to savepoint", "ROLLBACK TO SAVEPOINT part")
            del self._written[before:]
        else:
            await self._run("release savepoint", "RELEASE SAVEPOINT part")

    async def _duplicate(self, tag: str) -> None:
        """The second use of an id of its own burns a number; nobody else waits for it."""
        await self._run("savepoint", "SAVEPOINT twice")
        before = len(self._written)
        try:
            for _ in range(2):
                rows = await (await self._connected()).run(say.insert_external("own", tag, f"{self.name} twice"))
                self._written += [row[0] for row in rows]
        except DATABASE_ERRORS as error:
            self.journal.failed(error)
            if code_of(error) not in ("23505", "1062"):
                raise Unfinished from error
            self.journal.did("duplicate")
        del self._written[before:]
        await self._run("rollback to savepoint", "ROLLBACK TO SAVEPOINT twice")

    async def _hung(self, domain: str, tag: str) -> AsyncIterator[None]:
        """Ids are drawn, and the statement hangs before their rows exist."""
        obstacle = await self._obstacle()
        text = self._words.insert_hung(domain, tag, obstacle.expression, self._chance.randrange(6))
        await self._connected()
        statement = asyncio.create_task(self._insert("hung", text))
        try:
            await obstacle.met(self._backend)
            for _ in range(self._chance.randint(0, 5)):
                yield
            if self._chance.random() < self._mix.killed:
                await self._kill_backend()
                self.journal.did("killed while it hung")
        finally:
            await obstacle.lift()
            await asyncio.wait({statement})
        await statement

    async def _copied(self, domain: str, tag: str) -> AsyncIterator[None]:
        """COPY in slow pieces: their ids are drawn, and nothing of them is in the table before the last."""
        pieces: asyncio.Queue[bytes | None] = asyncio.Queue()
        session = await self._connected()
        copying = asyncio.create_task(_copy(session, pieces))
        try:
            rows = self._chance.randint(1, 4)
            for _ in range(rows):
                pieces.put_nowait(f"{domain}\t{say.TYPE}\t{tag}\t{{}}\n".encode())
                yield
        finally:
            pieces.put_nowait(None)
            await asyncio.wait({copying})
        try:
            await copying
        except DATABASE_ERRORS as error:
            self.journal.failed(error)
            raise Unfinished from error
        self.journal.did("copied")
        # COPY does not tell its ids; they are the newest of this tag.
        found = await self._rows(f"SELECT id FROM events WHERE correlation_id = '{tag}' ORDER BY id DESC LIMIT {rows}")
        self._written += [row[0] for row in found]

    async def _ended(self, tag: str) -> AsyncIterator[None]:
        if self._chance.random() < self._mix.rollback:
            await self._run("rollback", "ROLLBACK")
            self.journal.was_undone(tag)
        else:
            sent = time.time()
            await self._run("commit", "COMMIT")
            self._committed(tag, sent)
        yield

    async def _prepared(self, tag: str) -> AsyncIterator[None]:
        *before, prepare = self._words.prepare(tag)
        for text in before:
            await self._run("end", text)
        await self._run("prepare", prepare)
        left = Left(tag, tuple(self._written))
        yield
        if self._chance.random() < self._mix.left:
            await self.leave()
            self._left.append(left)
            self.journal.did("left prepared")
            return
        for _ in range(self._chance.randint(0, 6)):
            yield
        await self._finish(left)

    async def _finish_left(self, left: Left) -> None:
        """Somebody else finishes it, unless the server has not let go of its first owner yet."""
        try:
            await self._finish(left)
            self.journal.did("finished by another")
        except Unfinished as error:
            if error.__cause__ is not None and code_of(error.__cause__) in ("1397", "55000"):
                self._left.append(left)
            await self.leave()

    async def _finish(self, left: Left) -> None:
        verb, sent = self._chance.choice(["COMMIT", "COMMIT", "ROLLBACK"]), time.time()
        await self._run(f"{verb.lower()} prepared", self._words.finish(left.tag, verb))
        if verb == "COMMIT":
            self.journal.committed(left.tag, list(left.ids), sent, time.time())
        else:
            self.journal.was_undone(left.tag)

    async def _kill(self) -> None:
        await self._kill_backend()
        self.journal.did("killed")
        raise Unfinished

    async def _kill_backend(self) -> None:
        killer = await self._opened()
        try:
            await killer.run(self._words.kill(self._backend))
        except DATABASE_ERRORS as error:
            self.journal.failed(error)
        finally:
            await killer.close()

    async def _insert(self, kind: str, text: str) -> None:
        rows = await self._run(kind, text)
        self._written += [row[0] for row in rows]

    async def _run(self, kind: str, text: str) -> list[tuple[Any, ...]]:
        rows = await self._rows(text)
        self.journal.did(kind)
        return rows

    async def _rows(self, text: str) -> list[tuple[Any, ...]]:
        session = await self._connected()
        try:
            return await session.run(text)
        except DATABASE_ERRORS as error:
            self.journal.failed(error)
            raise Unfinished from error

    def _committed(self, tag: str, sent: float) -> None:
        self.journal.committed(tag, self._written, sent, time.time())

    def _domain(self) -> str:
        return self._chance.choice(self._domains)

    async def _connected(self) -> Session:
        if self._session is None:
            self._session = await self._opened()
            try:
                ((self._backend,),) = await self._session.run(self._words.who_am_i)
            except DATABASE_ERRORS as error:
                self.journal.failed(error)
                raise Unfinished from error
        return self._session

    async def _opened(self) -> Session:
        return await eventually(self._try_to_connect, timeout=RECONNECT_WITHIN, what="the server to let producers in")

    async def _try_to_connect(self) -> Session | None:
        try:
            return await connect(self._url)
        except DATABASE_ERRORS as error:
            self.journal.failed(error)
            return None


async def _copy(session: Any, pieces: "asyncio.Queue[bytes | None]") -> None:
    async def source() -> AsyncIterator[bytes]:
        while (piece := await pieces.get()) is not None:
            yield piece

    await session.connection.copy_to_table("events", source=source(), columns=say.COLUMNS.split(", "))
