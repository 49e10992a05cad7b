"""What a run stands on: a server of its own, an installation with open gates, a route, and its subscriptions."""

import asyncio
import json
import os
import secrets
from base64 import b64encode
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import ClassVar
from urllib.parse import urlsplit

from tests.chaos.attendants import Attendant
from tests.chaos.checker import Witness
from tests.chaos.endpoints import BUSY_SECONDS, HANDLER_SECONDS, Endpoint, endpoints, provers
from tests.chaos.hurrying import KEEP_SECONDS, PATIENCE, PLANT, VISIBILITY
from tests.chaos.schedule import Tier, names_of
from tests.support.database import SERVERS, Database
from tests.support.ports import LOOPBACK, ReservedPort
from tests.support.processes import INHERITED
from tests.support.servers import MariaDBServer, PostgresServer
from tidings.decisions.keys import check_new_key
from tidings.flow import OWNER
from tidings.roles.keys import actions as keys
from tidings.vault import Vault, seal_secret

KEY = "the-key-of-the-chaos"
BASE_DELAY, MAX_DELAY = 0.2, 1.0
TIMEOUT = 1.2
MAX_LEASE_RESETS = 1
PRODUCERS = 6
BLOCKED = "https://169.254.169.254/latest"


@dataclass
class Ground:
    """`planted` is the name of a bug that every process of the product gets. Endpoints are at `address`."""

    address: ClassVar[str] = LOOPBACK

    kind: str
    tier: Tier
    seed: int
    folder: Path
    planted: str = ""
    subscriptions: list[dict[str, object]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)

    async def lay(self) -> None:
        self.server = self._new_server()
        await asyncio.to_thread(self.server.start)
        self.database = self._new_database()
        await self.database.migrate()
        self.witness = Witness(self.database.admin_url, self.database.names.schema)
        self.vault = Vault([KEY])
        self._dead_port = ReservedPort()
        self.api_ports = {name: ReservedPort() for name in names_of("api") if "api" in self.tier.roles}
        received = str(self.folder / "received.jsonl")
        self.receiver = await Attendant("tests.chaos.receiver", received, self.address).start()
        self.receiver_port = int((await self.receiver.next_line())[1])
        targets = {"database": self.server.port, "producers": self.server.port, "endpoints": self.receiver_port}
        self.relay = await Attendant("tests.chaos.relay", *(f"{name}={port}" for name, port in targets.items())).start()
        self.ports = {name: int(port) for name, port in [await self.relay.next_line() for _ in targets]}
        await self._configure()
        await asyncio.to_thread(self.witness.watch)

    def _new_server(self) -> PostgresServer | MariaDBServer:
        return SERVERS[self.kind]()

    def _new_database(self) -> Database:
        return Database(self.server)

    async def _configure(self) -> None:
        for gate in ("routing", "router:default"):
            await self.database.sql(f"INSERT INTO gates (name, is_open) VALUES ('{gate}', true)")
        await self.database.sql("INSERT INTO routes (event_type, target) VALUES ('*', 'webhook')")
        asked = provers() if "verifier" in self.tier.roles else []
        for id, endpoint in enumerate([*endpoints(), *asked], 1):
            await self._subscribe(id, endpoint)
        self.operator_key = await self._key("operator")
        limits = {
            "max_lease_resets": MAX_LEASE_RESETS,
            "base_delay": BASE_DELAY,
            "max_delay": MAX_DELAY,
            "busy_seconds": BUSY_SECONDS,
            "timeout": TIMEOUT,
            "handler_seconds": HANDLER_SECONDS,
        }
        self._write("limits.json", limits)
        self._write("subscriptions.json", self.subscriptions)
        self._write(
            "producer.json",
            {
                "seed": self.seed,
                "events": self.tier.events,
                "tasks": self.tier.tasks,
                "seconds": self.tier.seconds,
                "producers": PRODUCERS,
                # Whoever calls the poisonous one is killed, and that is a fault.
                "but": [*self.tier.without, *([] if self.tier.counts else ["ill.c"])],
                "url": _by_way_of(self.database.url(OWNER), self.ports["producers"]),
                "schema": self.database.names.schema,
                "api": [port.number for port in self.api_ports.values()],
                "key": await self._key("publisher"),
                "ledger": str(self.folder / "produced.jsonl"),
            },
        )

    async def _key(self, scope: str) -> str:
        """With which one of the producers publishes, and somebody asks for calls to endpoints."""
        admin = await self.database.open("key_admin")
        return (await keys.add(admin, check_new_key(scope, [scope], None), "ground")).key

    async def _subscribe(self, id: int, endpoint: Endpoint) -> None:
        secret = "whsec_" + b64encode(secrets.token_bytes(24)).decode()
        sealed = seal_secret(self.vault, id, secret, created_at=0, overlap=0)
        literal = f"'\\x{sealed.hex()}'" if self.database.family == "postgresql" else f"x'{sealed.hex()}'"
        is_trusted = endpoint.kind not in ("agrees", "declines")
        await self.database.sql(
            "INSERT INTO subscriptions (event_type, callback_url, active, verified, verification, max_retry_limit,"
            f" timeout_seconds, max_in_flight, secrets) VALUES ('{endpoint.event_type}', '{self._url(endpoint)}', true,"
            f" {str(is_trusted).lower()}, 'echo',"
            # Few at a time to the slow ones: the others that were leased wait, and some are given back.
            f" {endpoint.max_retry_limit}, {TIMEOUT}, {_in_flight(endpoint)}, {literal})"
        )
        self.subscriptions.append({"id": id, **asdict(endpoint), "secrets": [[0.0, secret]]})

    def _url(self, endpoint: Endpoint) -> str:
        if endpoint.kind == "refused":
            return BLOCKED
        port = self.ports["endpoints"] if endpoint.relayed else self.receiver_port
        return f"http://{self.address}:{self._dead_port.number if endpoint.kind == 'dead' else port}{endpoint.path}"

    def environments(self) -> dict[str, dict[str, str]]:
        """Of each process; every second one comes to the database by way of the relay."""
        return {
            name: self._environment(name, is_relayed=number % 2 == 1)
            for role in self.tier.roles
            for number, name in enumerate(names_of(role))
        }

    def _environment(self, name: str, is_relayed: bool) -> dict[str, str]:
        urls = self.database.environment()
        if is_relayed:
            port = self.ports["database"]
            urls = {name: _by_way_of(url, port) if "URL" in name else url for name, url in urls.items()}
        return {
            **{name: os.environ[name] for name in INHERITED if name in os.environ},
            **urls,
            "TIDINGS_SECRET_KEYS": KEY,
            "TIDINGS_ALLOW_HTTP_HOSTS": "127.0.0.1",
            "TIDINGS_ALLOW_NETWORKS": "127.0.0.0/8",
            "TIDINGS_LEASE_SECONDS": f"{self.tier.lease:g}s",
            "TIDINGS_TIMEOUT_SECONDS": f"{TIMEOUT * 1000:.0f}ms",
            "TIDINGS_WORKER_SLOTS": "32",
            "TIDINGS_MAX_IN_FLIGHT": "4",
            "TIDINGS_MAX_LEASE_RESETS": str(MAX_LEASE_RESETS),
            "TIDINGS_BASE_DELAY_SECONDS": f"{int(BASE_DELAY * 1000)}ms",
            "TIDINGS_MAX_DELAY_SECONDS": f"{int(MAX_DELAY * 1000)}ms",
            "TIDINGS_APP": "tests.chaos.handlers",
            "TIDINGS_RESCUE_EVERY": "1s",
            "TIDINGS_ARCHIVE_AFTER": f"{self.tier.archive_after * 1000:.0f}ms",
            "TIDINGS_KEEP_FINISHED": "1h",
            "TIDINGS_LOG_FORMAT": "json",
            "TIDINGS_LOG_LEVEL": "info",
            # Of calls to endpoints, which the application has no word about.
            "TIDINGS_HANDLER_TIMEOUT": "3s",
            "TIDINGS_VISIBILITY_TIMEOUT": "9s",
            VISIBILITY: f"{self.tier.lease * 2 / 3:g}",
            "TIDINGS_TEST_RUNS": str(self.folder / "runs.jsonl"),
            PATIENCE: "0.5",
            KEEP_SECONDS: f"{self.tier.kept:g}",
            **({PLANT: self.planted} if self.planted else {}),
            **({"TIDINGS_PORT": str(self.api_ports[name].number)} if name in self.api_ports else {}),
        }

    async def clear(self) -> None:
        for attendant in ("receiver", "relay"):
            if hasattr(self, attendant):
                await getattr(self, attendant).stop()
        if hasattr(self, "database"):
            await self.database.close()
        if hasattr(self, "server"):
            await asyncio.to_thread(self.server.stop, remove=True)
        if hasattr(self, "_dead_port"):
            for port in (self._dead_port, *self.api_ports.values()):
                port.release()

    def _write(self, name: str, content: object) -> None:
        (self.folder / name).write_text(json.dumps(content), encoding="utf-8")


def _in_flight(endpoint: Endpoint) -> int:
    """One at a time to the slow ones, but where many go: in the end all must have gone through within a minute."""
    if endpoint.kind == "slow":
        return 1 if endpoint.event_type.startswith("ill") else 3
    return 4


def _by_way_of(url: str, port: int) -> str:
    parts = urlsplit(url)
    account, at, _ = parts.netloc.rpartition("@")
    return parts._replace(netloc=f"{account}{at}127.0.0.1:{port}").geturl()
