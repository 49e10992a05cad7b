"""Who waits for a lock, by the server's own word: nobody has to wait for a while and hope."""

from tests.support.database import Database
from tests.support.waiting import eventually

_WAITING = {
    "postgresql": "SELECT COUNT(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'",
    "mysql": "SELECT COUNT(*) FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'",
}


async def somebody_waits(database: Database) -> None:
    async def is_waiting() -> bool:
        return bool(await database.value(_WAITING[database.family], "admin"))

    await eventually(is_waiting, what="somebody to wait for a lock")
