"""Hosts in network namespaces, each with an address of its own, on one bridge: links are cut, and mended.

Works in a process that has a network of its own (`tests.machines.__main__`); with its last process all is gone.
"""

import asyncio
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar
from urllib.parse import urlsplit

import pymysql

from tests.chaos.endpoints import Endpoint
from tests.chaos.nursery import HOST
from tests.chaos.schedule import Tier
from tests.machines.trial import Report, Trial, TrialGround, under_way
from tests.support.database import Database
from tests.support.ports import LOOPBACK
from tests.support.server_process import PASSWORD
from tests.support.servers import MariaDBServer, PostgresServer
from tests.support.waiting import eventually, pause, wait_until

NETWORK, SECOND_WAY = "10.99.0", "10.98.0"
# Where the database, its producers and the endpoints are.
DATABASE = f"{NETWORK}.1"
WORKERS = ("w1", "w2", "w3")
ORCHESTRATORS = ("o1", "o2")
# TCP tries again after pauses that grow with the time for which nobody answered.
GRACE = 3.0


class Network:
    """The bridge is at the database's host, which is where we are."""

    def __init__(self) -> None:
        self._holders: dict[str, subprocess.Popen[bytes]] = {}

    def make(self) -> None:
        for words in (
            "link set lo up",
            "link add hub type bridge",
            f"address add {DATABASE}/24 dev hub",
            "link set hub up",
        ):
            _ip(words)
        for number, host in enumerate((*WORKERS, *ORCHESTRATORS), 11):
            self._add(host, f"{NETWORK}.{number}")

    def _add(self, host: str, address: str) -> None:
        holder = self._holders[host] = subprocess.Popen(["unshare", "--net", "sleep", "infinity"])
        ours = Path("/proc/self/ns/net").readlink()
        wait_until(lambda: _network_of(holder.pid) not in (None, ours), what=f"the network of {host}")
        _ip(f"link add {host} type veth peer name eth0 netns {holder.pid}")
        _ip(f"link set {host} master hub up")
        for words in ("link set lo up", f"address add {address}/24 dev eth0", "link set eth0 up"):
            _ip(words, within=self.namespace(host))

    def add_second_way(self, host: str) -> None:
        """Another link between this host and the database's, under other addresses."""
        _ip(f"link add {host}b type veth peer name eth1 netns {self._holders[host].pid}")
        for words in (f"address add {SECOND_WAY}.1/24 dev {host}b", f"link set {host}b up"):
            _ip(words)
        for words in (f"address add {SECOND_WAY}.2/24 dev eth1", "link set eth1 up"):
            _ip(words, within=self.namespace(host))

    def namespace(self, host: str) -> str:
        return f"/proc/{self._holders[host].pid}/ns/net"

    def cut(self, host: str) -> None:
        """No word passes, and nobody is told so."""
        _ip(f"link set {host} down")

    def mend(self, host: str) -> None:
        _ip(f"link set {host} up")

    def clear(self) -> None:
        for holder in self._holders.values():
            holder.kill()
            holder.wait()


def _network_of(pid: int) -> Path | None:
    with suppress(OSError):
        return Path(f"/proc/{pid}/ns/net").readlink()
    return None


def _ip(words: str, within: str = "") -> None:
    enter = ["nsenter", f"--net={within}"] if within else []
    subprocess.run([*enter, "ip", *words.split()], check=True, timeout=20)


class ReachablePostgres(PostgresServer):
    """Listens on all addresses, and lets the hosts in."""

    def _install(self) -> None:
        super()._install()
        with (self.data / "pg_hba.conf").open("a") as file:
            file.writelines(f"host all all {one}.0/24 scram-sha-256\n" for one in (NETWORK, SECOND_WAY))

    def _command(self) -> list[str]:
        return [*super()._command(), "--listen_addresses=*"]


class ReachableMariaDB(MariaDBServer):
    """Listens on all addresses."""

    def _command(self) -> list[str]:
        return [*super()._command(), "--bind-address=0.0.0.0"]


SERVERS: dict[str, type[ReachablePostgres] | type[ReachableMariaDB]] = {
    "postgresql": ReachablePostgres,
    "mariadb": ReachableMariaDB,
}
LIVES_ON = {
    **{f"worker-{number}": host for number, host in enumerate(WORKERS, 1)},
    **{f"task-worker-{number}": host for number, host in enumerate(WORKERS[:2], 1)},
    **{
        f"{role}-{number}": host
        for role in ("router", "orchestrator", "cleaner", "rescuer")
        for number, host in enumerate(ORCHESTRATORS, 1)
    },
}


@dataclass
class HostsGround(TrialGround):
    address: ClassVar[str] = DATABASE
    names: ClassVar[tuple[str, ...]] = tuple(LIVES_ON)
    network: Network = field(default_factory=Network)

    async def lay(self) -> None:
        await asyncio.to_thread(self.network.make)
        await super().lay()

    def _new_server(self) -> PostgresServer | MariaDBServer:
        return SERVERS[self.kind]()

    def _new_database(self) -> Database:
        return _DatabaseElsewhere(self.server)

    def _url(self, endpoint: Endpoint) -> str:
        return super()._url(replace(endpoint, relayed=False))

    def environments(self) -> dict[str, dict[str, str]]:
        allowed = {"TIDINGS_ALLOW_HTTP_HOSTS": DATABASE, "TIDINGS_ALLOW_NETWORKS": f"{NETWORK}.0/24"}
        return {
            name: {**given, **allowed, HOST: self.network.namespace(LIVES_ON[name])}
            for name, given in super().environments().items()
        }

    async def clear(self) -> None:
        await super().clear()
        await asyncio.to_thread(self.network.clear)


class _DatabaseElsewhere(Database):
    """By the address under which other hosts know it."""

    def url(self, role: str) -> str:
        return super().url(role).replace("@127.0.0.1:", f"@{DATABASE}:")


async def cut_off(kind: str, tier: Tier, folder: Path) -> Report:
    """One host after the other is cut off for longer than leases last, comes back, and takes part again."""
    report = Report(f"hosts cut off and back on {kind}")
    # Longer than the hosts are away: there must be something to do when they are back.
    ground = HostsGround(kind, replace(tier, seconds=max(tier.seconds, 10.0)), 1, folder)
    async with under_way(ground, report) as trial:
        turns = [("w1", "o1")] if tier.name == "small" else [("w1",), ("o1",), ("w2", "w3"), ("o2",), ("w1", "o1")]
        for number, hosts in enumerate(turns):
            await trial.half_way(0.2 + 0.7 * number / len(turns))
            await _cut_and_mend(trial, ground.network, hosts, tier.lease + 1.5)
        await trial.producers_end()
        report.figures["seconds until all had come to its end"] = await trial.drained()
        await trial.judged(report)
    return report


async def _cut_and_mend(trial: Trial, network: Network, hosts: tuple[str, ...], seconds: float) -> None:
    since = time.time()
    for host in hosts:
        await asyncio.to_thread(network.cut, host)
    await pause(seconds)
    for host in hosts:
        await asyncio.to_thread(network.mend, host)
    back = time.time()
    trial.broken("part database", since, back + seconds + GRACE, _living_on(trial, hosts))
    trial.broken("cut endpoints", since, back + seconds + GRACE)
    workers = _living_on(trial, tuple(host for host in hosts if host in WORKERS))
    if workers:
        await eventually(lambda: _leases_since(trial, workers, back), 30, f"{hosts} to take part again")


def _living_on(trial: Trial, hosts: tuple[str, ...]) -> list[int]:
    return [trial.crew.pids[name] for name, where in LIVES_ON.items() if where in hosts]


def _leases_since(trial: Trial, pids: list[int], moment: float) -> bool:
    """By the history: somebody of that host has leased something after it was back, while there is something to do."""
    if not trial.ground.witness.unfinished():
        return True
    rows = trial.ground.witness.rows(
        "SELECT DISTINCT worker FROM chaos_history WHERE what = 'job' AND new_status = 'Leased'"
        f" AND {_seconds(trial)} > {moment:.3f}"
    )
    return any(f":{pid}:" in (row["worker"] or "") for row in rows for pid in pids)


def _seconds(trial: Trial) -> str:
    if trial.ground.witness.is_postgresql:
        return "extract(epoch FROM at)"
    return "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', at) / 1000000e0"


async def silence(kind: str, tier: Tier, folder: Path) -> Report:
    """The way to the server is cut while it works for us: that is noticed, and the other way is taken."""
    report = Report(f"a server that is gone without a word on {kind}")
    network, server = Network(), SERVERS[kind]()
    began = time.monotonic()
    try:
        await asyncio.to_thread(network.make)
        await asyncio.to_thread(network.add_second_way, "w1")
        await asyncio.to_thread(server.start)
        if isinstance(server, MariaDBServer):
            await asyncio.to_thread(_let_root_in, server)
        parts = urlsplit(server.admin_url)
        account = parts.netloc.rpartition("@")[0]
        hosts = f"{DATABASE}:{server.port},{SECOND_WAY}.1:{server.port}"
        url = parts._replace(netloc=f"{account}@{hosts}").geturl()
        command = ["nsenter", f"--net={network.namespace('w1')}", sys.executable, "-m", "tests.machines.asking", url]
        asking = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
        assert asking.stdout is not None
        assert await asyncio.wait_for(asking.stdout.readline(), 30) == b"asks\n"
        await pause(0.5)
        await asyncio.to_thread(network.cut, "w1")
        seconds = float(await asyncio.wait_for(asking.stdout.readline(), 90))
        report.figures["seconds until it was answered by the other way"] = seconds
        if not 5 < seconds < 45:
            report.problems.append(f"it took {seconds:.0f} s")
        await asking.wait()
    finally:
        await asyncio.to_thread(network.clear)
        await asyncio.to_thread(server.stop, remove=True)
        report.seconds = time.monotonic() - began
    return report


def _let_root_in(server: MariaDBServer) -> None:
    connection = pymysql.connect(host=LOOPBACK, port=server.port, user="root", password=PASSWORD, ssl_disabled=True)
    with connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE USER root@'10.%' IDENTIFIED BY '{PASSWORD}'")
        cursor.execute("GRANT ALL ON *.* TO root@'10.%'")
