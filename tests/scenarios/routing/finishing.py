"""Finishes prepared transactions that nobody else will."""

from random import Random

from tests.scenarios.routing.journal import DATABASE_ERRORS
from tests.scenarios.routing.words import WORDS
from tests.support.database import Database
from tests.support.sessions import Session, connect
from tests.support.waiting import eventually


async def finish_prepared(database: Database, chance: Random, verbs: tuple[str, ...] = ("COMMIT", "ROLLBACK")) -> None:
    """As the administrator, one by one, until the server lists none."""
    session = await connect(database.admin_url)
    try:
        await eventually(lambda: _none_left(session, database.kind, chance, verbs), what="prepared transactions to end")
    finally:
        await session.close()


async def _none_left(session: Session, kind: str, chance: Random, verbs: tuple[str, ...]) -> bool:
    words = WORDS[kind]
    tags = [row[-1] for row in await session.run(words.prepared)]
    for tag in tags:
        text = words.finish(tag.decode() if isinstance(tag, bytes) else tag, chance.choice(verbs))
        try:
            await session.run(text)
        except DATABASE_ERRORS:
            continue  # its first owner has not left it yet: it is still listed the next time
    return not tags
