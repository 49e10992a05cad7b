"""The engine matrix: every test that asks for `engine` runs on PostgreSQL and on MariaDB, on private servers."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from tests.support.database import SERVERS, Database, throwaway_installation
from tests.support.emptying import Emptier
from tests.support.fault_proxy import FaultProxy
from tests.support.processes import Process, processes
from tests.support.servers import MariaDBServer, PostgresServer
from tidings.telemetry.bus import listening
from tidings.telemetry.notices import Notice

Server = PostgresServer | MariaDBServer
TESTS = Path(__file__).parent
ENGINES, POOLED = ("postgresql", "mariadb"), "pgbouncer"
# What runs behind PgBouncer in every run: publish, route, start, apply, bury, report, requeue, submit and finish tasks.
CORE = (
    "roles/ingest/test_service.py",
    "roles/router/test_pass.py",
    "roles/orchestrator/test_advancing.py",
    "roles/worker/test_reporting.py",
    "roles/dead_letters/test_requeueing.py",
    "roles/task_producer/test_submitting.py",
    "roles/task_worker/test_fencing.py",
)
LONG = ("scenarios", "plans", "faults", "packaging", "cli")


def pytest_configure() -> None:
    """Started in the background of a shell, the tests and every process of theirs would ignore Ctrl-C."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    help = "run the engine matrix on this one only, or all of it on PostgreSQL by way of PgBouncer"
    parser.addoption("--engine", choices=[*SERVERS], help=help)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "engine_kind" in metafunc.fixturenames:
        marker = metafunc.definition.get_closest_marker("one_engine")
        if marker and not (marker.kwargs.get("reason") or metafunc.function.__doc__):
            raise pytest.UsageError(f"{metafunc.definition.nodeid} runs on one engine only and does not say why")
        kinds = [marker.args[0]] if marker else [*ENGINES, POOLED]
        chosen = metafunc.config.getoption("--engine")
        if chosen is None and not marker and not _is_core(metafunc.definition.path):
            kinds.remove(POOLED)
        metafunc.parametrize("engine_kind", [kind for kind in kinds if chosen in (None, kind)], scope="session")


def _is_core(path: Path) -> bool:
    return str(path.relative_to(TESTS)) in CORE


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The long ones first, so that no worker is left alone with them at the end."""
    for item in items:
        quick = item.get_closest_marker("quick_on")
        if quick and isinstance(item, pytest.Function) and item.callspec.params["engine_kind"] not in quick.args:
            item.add_marker(pytest.mark.full)
    items.sort(key=_turn)


def _turn(item: pytest.Item) -> int:
    folder = item.path.relative_to(TESTS).parts[0]
    return LONG.index(folder) if folder in LONG else len(LONG)


@pytest.fixture(scope="session")
def servers() -> Iterator[Callable[[str], Server]]:
    """Starts each kind of server once for a test worker, when first asked for."""
    started: dict[str, Server] = {}

    def server(kind: str) -> Server:
        if kind not in started:
            availability = SERVERS[kind].available()
            if not availability:
                pytest.skip(availability.reason)
            started[kind] = SERVERS[kind]()
            started[kind].start()
        return started[kind]

    yield server
    for running in started.values():
        running.stop(remove=True)


@pytest.fixture
def own_kind(engine_kind: str) -> str:
    """Of a server that the test starts for itself."""
    if not (availability := SERVERS[engine_kind].available()):
        pytest.skip(availability.reason)
    return engine_kind


@pytest.fixture(scope="session")
def server(engine_kind: str, servers: Callable[[str], Server]) -> Server:
    return servers(engine_kind)


@pytest.fixture(scope="session")
def installations(servers: Callable[[str], Server]) -> Iterator[dict[str, tuple[Database, Emptier]]]:
    """What `migrated` has made: pytest forgets a fixture's value when its parameter changes, the servers do not."""
    made: dict[str, tuple[Database, Emptier]] = {}
    yield made
    for _, emptier in made.values():
        emptier.close()


@pytest.fixture(scope="session")
def migrated(server: Server, installations: dict[str, tuple[Database, Emptier]]) -> Database:
    if server.kind not in installations:
        made = Database(server)
        asyncio.run(made.migrate())
        installations[server.kind] = made, made.emptier()
    return installations[server.kind][0]


@pytest.fixture
async def engine(migrated: Database, installations: dict[str, tuple[Database, Emptier]]) -> AsyncIterator[Database]:
    """An empty, migrated installation on this engine."""
    migrated.keep_sessions()
    yield migrated
    await migrated.close()
    installations[migrated.server.kind][1].empty()


@pytest.fixture
async def throwaway(server: Server) -> AsyncIterator[Database]:
    """A migrated installation of one's own, to be damaged."""
    database = await throwaway_installation(server)
    yield database
    await database.close()


@pytest.fixture
def proxy(engine: Database) -> Iterator[FaultProxy]:
    """A way to the server that tells which statements went by, and strikes at those it is told to."""
    with FaultProxy(engine.server.port, engine.kind) as proxy:
        yield proxy


@pytest.fixture
def told() -> Iterator[list[Notice]]:
    """Every notice that is given during the test."""
    heard: list[Notice] = []
    with listening(heard.append):
        yield heard


@pytest.fixture
def start() -> Iterator[Callable[[Process], Process]]:
    """Starts a process; what still runs after the test is ended."""
    yield from processes()


def _missing_servers() -> list[str]:
    return [kind for kind, server in SERVERS.items() if not server.available()]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for kind in _missing_servers():
        part = "HALF" if kind in ENGINES else "PART"
        terminalreporter.section(f"THE {kind.upper()} {part} OF THE TESTS WAS SKIPPED", red=True, bold=True)
        terminalreporter.line(SERVERS[kind].available().reason)


def pytest_sessionfinish(session: pytest.Session) -> None:
    if os.environ.get("CI") and _missing_servers():
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
