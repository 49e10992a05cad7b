"""Finishes prepared transactions that nobody else will."""

from collections.abc import Callable, Collection
from random import Random

from tests.scenarios.routing.journal import DATABASE_ERRORS
from tests.scenarios.routing.words import WORDS
from tests.support.database import Database
from tests.support.sessions import Session, connect
from tests.support.waiting import eventually


async def finish_prepared(
    database: Database, chance: Random, verbs: tuple[str, ...] = ("COMMIT", "ROLLBACK"), undone: Collection[str] = ()
) -> None:
    """As the administrator, one by one, until the server lists none.

    MariaDB does not flush XA ROLLBACK: killed right after it, the server lists the branch again, and whoever had
    decided to undo it has to say so again.
    """

    def verb_for(tag: str) -> str:
        return "ROLLBACK" if tag in undone else chance.choice(verbs)

    session = await connect(database.admin_url)
    try:
        await eventually(lambda: _none_left(session, database.kind, verb_for), 60, "prepared transactions to end")
    finally:
        await session.close()


async def _none_left(session: Session, kind: str, verb_for: Callable[[str], str]) -> bool:
    words = WORDS[kind]
    found = [row[-1] for row in await session.run(words.prepared)]
    tags = [tag.decode() if isinstance(tag, bytes) else tag for tag in found]
    for tag in tags:
        try:
            await session.run(words.finish(tag, verb_for(tag)))
        except DATABASE_ERRORS:
            continue  # its first owner has not left it yet: it is still listed the next time
    return not tags
