"""PostgreSQL behind PgBouncer in transaction mode: every role comes by way of it, the administrator does not.

As unkind as it can be: each transaction gets another session of the server, in turn.
"""

import shutil
import signal
import socket
from contextlib import suppress
from typing import Self

from tests.support import watchdog
from tests.support.ports import LOOPBACK, ReservedPort
from tests.support.server_process import ENVIRONMENT, PASSWORD, Availability
from tests.support.servers import PostgresServer
from tests.support.waiting import wait_until

SETTINGS = """\
[databases]
* = host={address} port={server}
[pgbouncer]
listen_addr = {address}
listen_port = {port}
unix_socket_dir =
auth_type = scram-sha-256
auth_file = {users}
auth_user = postgres
auth_query = SELECT usename, passwd FROM pg_shadow WHERE usename = $1
pool_mode = transaction
server_round_robin = 1
default_pool_size = 12
max_db_connections = 180
max_client_conn = 500
query_wait_timeout = 20
"""


class PooledPostgresServer(PostgresServer):
    """`port` is that of the server itself, `roles_port` that of the pooler."""

    _pooler = None
    _pooler_port: ReservedPort | None = None

    @classmethod
    def available(cls) -> Availability:
        if not _program():
            return Availability("PgBouncer is not installed: no pgbouncer")
        return super().available()

    @property
    def kind(self) -> str:
        return "pgbouncer"

    @property
    def roles_port(self) -> int:
        assert self._pooler_port is not None, "the pooler was not started"
        return self._pooler_port.number

    def start(self) -> Self:
        super().start()
        if self._pooler is None:
            self._start_pooler()
        return self

    def stop(self, remove: bool = False) -> None:
        self._stop_pooler()
        super().stop(remove)

    def _start_pooler(self) -> None:
        self._pooler_port = ReservedPort()
        users = self._write("users.txt", f'"postgres" "{PASSWORD}"\n')
        settings = self._write(
            "pgbouncer.ini",
            SETTINGS.format(address=LOOPBACK, server=self.port, port=self.roles_port, users=users),
        )
        self._pooler = self._launch([_program(), str(settings)])
        watchdog.guard_process(self._pooler.pid)
        wait_until(self._answers, what="PgBouncer to listen")

    def _stop_pooler(self) -> None:
        if self._pooler is None:
            return
        self._pooler.send_signal(signal.SIGTERM)
        self._pooler.wait(20)
        watchdog.release_process(self._pooler.pid)
        self._pooler = None
        assert self._pooler_port is not None
        self._pooler_port.release()
        self._pooler_port = None

    def _answers(self) -> bool:
        assert self._pooler is not None
        if self._pooler.poll() is not None:
            raise RuntimeError(f"PgBouncer ended with code {self._pooler.returncode}: {self.log[-500:]}")
        with suppress(OSError), socket.create_connection((LOOPBACK, self.roles_port), timeout=1):
            return True
        return False


def _program() -> str:
    return shutil.which("pgbouncer", path=ENVIRONMENT["PATH"]) or ""
