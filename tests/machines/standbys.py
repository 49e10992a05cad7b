"""A primary and a server that follows it, on both engines: attached, cut off, and put in the primary's place."""

import os
from abc import ABC, abstractmethod
from typing import Any

import psycopg
import pymysql
import pymysql.cursors

from tests.support import unprivileged
from tests.support.ports import LOOPBACK
from tests.support.server_process import PASSWORD
from tests.support.servers import MariaDBServer, PostgresServer, postgres_program
from tests.support.waiting import wait_until

PATIENCE = 30.0


class Pair(ABC):
    """`primary` runs from the beginning, `standby` from `attach()` on, with all that the primary has."""

    primary: PostgresServer | MariaDBServer
    standby: PostgresServer | MariaDBServer

    @abstractmethod
    def attach(self) -> None:
        """The standby begins, and follows."""

    @abstractmethod
    def be_synchronous(self) -> None:
        """From now on the primary acknowledges nothing that the standby does not have."""

    @abstractmethod
    def stop_following(self) -> None:
        """The standby gets nothing more, as one that lags behind."""

    @abstractmethod
    def promote(self) -> None:
        """The standby takes writes, with all that it was given."""

    def clear(self) -> None:
        for server in (self.standby, self.primary):
            server.stop(remove=True)


class _PostgresStandby(PostgresServer):
    def __init__(self, primary: PostgresServer) -> None:
        super().__init__()
        self._primary = primary

    def _install(self) -> None:
        source = f"host={LOOPBACK} port={self._primary.port} user=postgres password={PASSWORD}"
        options = [f"--pgdata={self.data}", "--wal-method=stream", "--checkpoint=fast", "--no-sync"]
        self._run_installer([postgres_program("pg_basebackup"), f"--dbname={source}", *options])
        with (self.data / "postgresql.auto.conf").open("a") as file:
            file.write(f"primary_conninfo = '{source} application_name=standby'\n")
        signal = self.data / "standby.signal"
        signal.touch()
        if run_as := unprivileged.identity():
            os.chown(signal, run_as["user"], run_as["group"])

    def _is_ready(self) -> bool:
        pid_file = self.data / "postmaster.pid"
        return pid_file.exists() and pid_file.read_text().rstrip().endswith(("ready", "standby"))


class PostgresPair(Pair):
    def __init__(self) -> None:
        self.primary: PostgresServer = PostgresServer()
        self.standby: PostgresServer = _PostgresStandby(self.primary)

    def attach(self) -> None:
        self.standby.start()
        self._await(self.primary, "SELECT count(*) = 1 FROM pg_stat_replication WHERE state = 'streaming'")

    def be_synchronous(self) -> None:
        self._run(self.primary, "ALTER SYSTEM SET synchronous_standby_names = 'standby'")
        self._run(self.primary, "SELECT pg_reload_conf()")
        self._await(self.primary, "SELECT count(*) = 1 FROM pg_stat_replication WHERE sync_state = 'sync'")

    def stop_following(self) -> None:
        self._run(self.standby, "ALTER SYSTEM SET primary_conninfo = ''")
        self._run(self.standby, "SELECT pg_reload_conf()")
        self._await(self.standby, "SELECT count(*) = 0 FROM pg_stat_wal_receiver")

    def promote(self) -> None:
        assert self._run(self.standby, f"SELECT pg_promote(true, {PATIENCE:g})") is True
        self._await(self.standby, "SELECT NOT pg_is_in_recovery()")

    def _await(self, server: PostgresServer, question: str) -> None:
        wait_until(lambda: self._run(server, question), PATIENCE, question)

    def _run(self, server: PostgresServer, text: str) -> Any:
        with psycopg.connect(server.admin_url, autocommit=True, connect_timeout=5) as connection:
            cursor = connection.execute(text)
            return (cursor.fetchone() or (None,))[0] if cursor.description else None


class _MariaDBPrimary(MariaDBServer):
    def _command(self) -> list[str]:
        return [*super()._command(), "--server-id=1", "--log-bin=binlog", "--binlog-format=ROW"]


class _MariaDBStandby(MariaDBServer):
    def _command(self) -> list[str]:
        return [*super()._command(), "--server-id=2", "--read-only=1", "--rpl-semi-sync-slave-enabled=ON"]


class MariaDBPair(Pair):
    """The standby is empty when it is attached, and replays everything from the primary's first statement on."""

    def __init__(self) -> None:
        self.primary: MariaDBServer = _MariaDBPrimary()
        self.standby: MariaDBServer = _MariaDBStandby()

    def attach(self) -> None:
        self.standby.start()
        self._run(
            self.standby,
            f"CHANGE MASTER TO master_host = '{LOOPBACK}', master_port = {self.primary.port}, master_user = 'root',"
            f" master_password = '{PASSWORD}', master_use_gtid = slave_pos",
        )
        self._run(self.standby, "START SLAVE")
        wait_until(self._has_caught_up, PATIENCE, "the standby to have everything")

    def be_synchronous(self) -> None:
        # Lossless: the standby has it before anybody else can see it, and nobody gives up waiting for that.
        for setting in ("wait_point = 'AFTER_SYNC'", "timeout = 600000", "enabled = ON"):
            self._run(self.primary, f"SET GLOBAL rpl_semi_sync_master_{setting}")
        # A standby says that it answers when it connects.
        self._run(self.standby, "STOP SLAVE IO_THREAD")
        self._run(self.standby, "START SLAVE IO_THREAD")
        status = "SHOW GLOBAL STATUS LIKE 'Rpl_semi_sync_master_clients'"
        wait_until(lambda: int(self._run(self.primary, status)[0]["Value"]) == 1, PATIENCE, "a standby that answers")

    def stop_following(self) -> None:
        self._run(self.standby, "STOP SLAVE IO_THREAD")

    def promote(self) -> None:
        wait_until(self._has_applied_all, PATIENCE, "the standby to have done what it was given")
        for text in ("STOP SLAVE", "RESET SLAVE ALL", "SET GLOBAL read_only = 0"):
            self._run(self.standby, text)

    def _status(self) -> dict[str, Any]:
        status: dict[str, Any] = self._run(self.standby, "SHOW SLAVE STATUS")[0]
        assert not status["Last_SQL_Error"], status["Last_SQL_Error"]
        return status

    def _has_applied_all(self) -> bool:
        status = self._status()
        given = (status["Master_Log_File"], status["Read_Master_Log_Pos"])
        return given == (status["Relay_Master_Log_File"], status["Exec_Master_Log_Pos"])

    def _has_caught_up(self) -> bool:
        written = self._run(self.primary, "SHOW MASTER STATUS")[0]
        status = self._status()
        done = (status["Relay_Master_Log_File"], status["Exec_Master_Log_Pos"])
        return status["Slave_IO_Running"] == "Yes" and done == (written["File"], written["Position"])

    def _run(self, server: MariaDBServer, text: str) -> Any:
        connection = pymysql.connect(
            host=LOOPBACK,
            port=server.port,
            user="root",
            password=PASSWORD,
            cursorclass=pymysql.cursors.DictCursor,
            connect_timeout=5,
            autocommit=True,
            ssl_disabled=True,
        )
        try:
            with connection.cursor() as cursor:
                cursor.execute(text)
                return cursor.fetchall()
        finally:
            connection.close()


PAIRS: dict[str, type[Pair]] = {"postgresql": PostgresPair, "mariadb": MariaDBPair}
