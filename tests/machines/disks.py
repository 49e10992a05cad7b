"""The disk under the database is full for a while: nothing that was acknowledged is lost, and all goes on by itself.

Works in a process that has mounts of its own (`tests.machines.__main__`); with its last process all is gone.
"""

import asyncio
import os
import shutil
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from tests.api.conftest import serving
from tests.chaos.schedule import Tier
from tests.machines.trial import Report, Trial, TrialGround, under_way
from tests.support import unprivileged
from tests.support.server_process import ServerProcess
from tests.support.servers import MariaDBServer, PostgresServer
from tests.support.waiting import eventually, pause
from tidings.model.key import Scope

ROOM = "500m"
# How long after there is room again everybody has noticed.
AFTERMATH = 6.0
LARGE = "x" * 100_000


class Disk:
    """A small one, which can be filled to the last byte and emptied again."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._ballast = place / "ballast"

    @classmethod
    def mounted(cls, place: Path) -> "Disk":
        place.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={ROOM}", "none", str(place)], check=True)
        if run_as := unprivileged.identity():
            os.chown(place, run_as["user"], run_as["group"])
        return cls(place)

    def unmount(self) -> None:
        subprocess.run(["umount", "--lazy", str(self._place)], check=True)

    def fill(self) -> None:
        """And again: the server itself frees something now and then, or takes what was just seen to be free."""
        with self._ballast.open("ab") as file:
            while free := shutil.disk_usage(self._place).free:
                with suppress(OSError):
                    os.posix_fallocate(file.fileno(), file.seek(0, os.SEEK_END), free)

    def clear(self) -> None:
        self._ballast.unlink(missing_ok=True)


class WithDisk(ServerProcess):
    """`disk` is small, and in its directory."""

    disk: Disk

    def _install(self) -> None:
        self.disk = Disk.mounted(self.directory / "disk")
        super()._install()  # type: ignore[safe-super]  # of the engine that comes after it

    def _leave(self) -> None:
        self.disk.unmount()
        super()._leave()


class SmallPostgres(WithDisk, PostgresServer):
    """`disk` has the tables; what is written ahead is elsewhere, as it is advised to be."""

    @property
    def data(self) -> Path:
        return self.directory / "disk" / "data"

    def _install(self) -> None:
        super()._install()
        # Not by Python, which would give it to ourselves.
        subprocess.run(["mv", self.data / "pg_wal", self.directory / "wal"], check=True)
        (self.data / "pg_wal").symlink_to(self.directory / "wal")


class SmallMariaDB(WithDisk, MariaDBServer):
    """The same."""

    @property
    def data(self) -> Path:
        return self.directory / "disk" / "data"

    def _install(self) -> None:
        super()._install()
        log = self.directory / "log"
        log.mkdir()
        subprocess.run(["mv", self.data / "ib_logfile0", log], check=True)
        if run_as := unprivileged.identity():
            os.chown(log, run_as["user"], run_as["group"])

    def _command(self) -> list[str]:
        return [*super()._command(), f"--innodb-log-group-home-dir={self.directory / 'log'}"]


class PostgresWithSmallLog(WithDisk, PostgresServer):
    """`disk` has what is written ahead."""

    def _install(self) -> None:
        super()._install()
        subprocess.run(["mv", self.data / "pg_wal", self.directory / "disk" / "wal"], check=True)
        (self.data / "pg_wal").symlink_to(self.directory / "disk" / "wal")


SERVERS: dict[str, type[SmallPostgres] | type[SmallMariaDB]] = {"postgresql": SmallPostgres, "mariadb": SmallMariaDB}


@dataclass
class DiskGround(TrialGround):
    server: Any = field(init=False)

    def _new_server(self) -> PostgresServer | MariaDBServer:
        return SERVERS[self.kind]()


async def full(kind: str, tier: Tier, folder: Path) -> Report:
    report = Report(f"a full disk on {kind}")
    ground = DiskGround(kind, tier, 1, folder)
    async with under_way(ground, report) as trial:
        await trial.half_way(0.4)
        since = time.time()
        await _publish_while_full(trial, ground.server.disk, report)
        trial.broken("database", since, time.time() + AFTERMATH)
        await trial.producers_end()
        report.figures["seconds until all had come to its end"] = await trial.drained()
        await trial.judged(report, lambda problem: "nobody committed it" in problem and "by-api" in problem)
    return report


class LogDiskGround(DiskGround):
    def _new_server(self) -> PostgresServer:
        return PostgresWithSmallLog()


async def full_for_the_log(kind: str, tier: Tier, folder: Path) -> Report:
    """PostgreSQL ends when it can't write ahead, and can't be begun until there is room."""
    report = Report("a full disk under the write-ahead log")
    ground = LogDiskGround(kind, tier, 1, folder)
    async with under_way(ground, report) as trial:
        await trial.half_way(0.2)
        since, server = time.time(), ground.server

        def is_over() -> bool:
            server.disk.fill()
            return not server.is_running

        await eventually(lambda: asyncio.to_thread(is_over), 90, "PostgreSQL to give up")
        report.figures["seconds until the server gave up"] = time.time() - since
        await pause(tier.lease)
        server.disk.clear()
        await asyncio.to_thread(server.restart)
        trial.broken("database", since, time.time() + AFTERMATH)
        await trial.producers_end()
        report.figures["seconds until all had come to its end"] = await trial.drained()
        await trial.judged(report)
    return report


async def _publish_while_full(trial: Trial, disk: Disk, report: Report) -> None:
    """By the API: 202 means that it is there, and without room there is a clear answer until there is some again."""
    acknowledged: list[str] = []
    refusals: list[httpx.Response] = []
    async with serving(trial.ground.database) as served:
        client = served.as_(Scope.PUBLISHER)

        async def publish(number: int) -> bool:
            name = f"by-api-{number}"
            event = {"event_type": "nobody.wants", "payload": LARGE, "correlation_id": name, "external_id": name}
            answer = await client.post("/v1/events", json=event)
            if answer.status_code == 202:
                acknowledged.append(name)
                return True
            refusals.append(answer)
            return False

        assert await publish(0)
        await asyncio.to_thread(disk.fill)
        for number in range(1, 200):
            if not await publish(number):
                break
        began = time.monotonic()
        while time.monotonic() - began < trial.ground.tier.lease + 1:
            await asyncio.to_thread(disk.fill)
            await pause(0.5)
        await publish(1_000)
        await asyncio.to_thread(disk.clear)
        server = trial.ground.server
        report.figures["servers that gave up"] = gave_up = not server.is_running
        if gave_up:
            # As whoever runs it does.
            (trial.folder / "server.log").write_text(server.log)
            await asyncio.to_thread(server.restart)
        await eventually(lambda: publish(2_000), 60, "events to be taken again")
    report.problems += [wrong for answer in refusals if (wrong := _unclear(answer, gave_up))]
    if not refusals:
        report.problems.append("the disk was never full")
    stored = {row["external_id"] for row in trial.ground.witness.rows("SELECT external_id FROM events")}
    report.problems += [f"{name} was acknowledged and is not there" for name in acknowledged if name not in stored]
    report.figures["answers that there was no room"] = len(refusals)


def _unclear(answer: httpx.Response, gave_up: bool) -> str:
    """503 with a problem that says so, as long as the server could say so itself; or what is wrong with it."""
    said = answer.json() if answer.headers["content-type"] == "application/problem+json" else {}
    is_refused = answer.status_code == 503 and said.get("code") in ("unavailable", "outcome_unknown")
    if is_refused and (gave_up or "no room" in said["detail"]):
        return ""
    return f"without room the API answered {answer.status_code}: {answer.text[:300]}"
