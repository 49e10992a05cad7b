"""The servers that programs measure on: as durable as in production, with the memory that such a machine gives them."""

from collections.abc import Sequence

from tests.support.database import SERVERS
from tests.support.servers import MariaDBServer, PostgresServer

# A quarter of a small machine, and no checkpoint in the middle of a short run.
_POSTGRESQL = ("--shared_buffers=1GB", "--max_wal_size=8GB", "--checkpoint_timeout=30min")
_MARIADB = ("--innodb-buffer-pool-size=1G", "--innodb-log-file-size=1G")
STATEMENTS = ("--shared_preload_libraries=pg_stat_statements", "--pg_stat_statements.track=all")
"""For PostgreSQL only: what each statement took, by the server's own account."""


class MeasuredPostgres(PostgresServer):
    def __init__(self, more: Sequence[str] = ()) -> None:
        super().__init__(durable=True)
        self._more = more

    def _command(self) -> list[str]:
        return [*super()._command(), *_POSTGRESQL, *self._more]


class MeasuredMariaDB(MariaDBServer):
    def __init__(self, more: Sequence[str] = ()) -> None:
        super().__init__(durable=True)
        self._more = more

    def _command(self) -> list[str]:
        return [*super()._command(), *_MARIADB, *self._more]


def measured_server(engine: str, more: Sequence[str] = ()) -> MeasuredPostgres | MeasuredMariaDB:
    """Not started yet; `more` are options of its command line."""
    return (MeasuredPostgres if SERVERS[engine] is PostgresServer else MeasuredMariaDB)(more)
