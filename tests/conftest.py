"""The engine matrix: every test that asks for `engine` runs on PostgreSQL and on MariaDB, on private servers."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from tests.support.database import SERVERS, Database, throwaway_installation
from tests.support.processes import Process, processes
from tests.support.servers import MariaDBServer, PostgresServer

Server = PostgresServer | MariaDBServer
TESTS = Path(__file__).parent
LONG = ("scenarios", "plans", "faults", "packaging", "cli")


def pytest_configure() -> None:
    """Started in the background of a shell, the tests and every process of theirs would ignore Ctrl-C."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--engine", choices=[*SERVERS], help="run the engine matrix on this one only")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "engine_kind" in metafunc.fixturenames:
        marker = metafunc.definition.get_closest_marker("one_engine")
        if marker and not (marker.kwargs.get("reason") or metafunc.function.__doc__):
            raise pytest.UsageError(f"{metafunc.definition.nodeid} runs on one engine only and does not say why")
        kinds = [marker.args[0]] if marker else [*SERVERS]
        chosen = metafunc.config.getoption("--engine")
        metafunc.parametrize("engine_kind", [kind for kind in kinds if chosen in (None, kind)], scope="session")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The long ones first, so that no worker is left alone with them at the end."""
    for item in items:
        quick = item.get_closest_marker("quick_on")
        if quick and isinstance(item, pytest.Function) and item.callspec.params["engine_kind"] not in quick.args:
            item.add_marker(pytest.mark.full)
    folders = [*LONG, *{item.path.relative_to(TESTS).parts[0] for item in items}]
    items.sort(key=lambda item: min(folders.index(item.path.relative_to(TESTS).parts[0]), len(LONG)))


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


@pytest.fixture(scope="session")
def server(engine_kind: str, servers: Callable[[str], Server]) -> Server:
    return servers(engine_kind)


@pytest.fixture(scope="session")
def installations() -> dict[str, Database]:
    """What `migrated` has made: pytest forgets a fixture's value when its parameter changes, the servers do not."""
    return {}


@pytest.fixture(scope="session")
def migrated(server: Server, installations: dict[str, Database]) -> Database:
    if server.engine not in installations:
        installations[server.engine] = Database(server)
        asyncio.run(installations[server.engine].migrate())
    return installations[server.engine]


@pytest.fixture
async def engine(migrated: Database) -> AsyncIterator[Database]:
    """An empty, migrated installation on this engine."""
    yield migrated
    await migrated.close()
    await migrated.empty()


@pytest.fixture
async def throwaway(server: Server) -> AsyncIterator[Database]:
    """A migrated installation of one's own, to be damaged."""
    database = await throwaway_installation(server)
    yield database
    await database.close()


@pytest.fixture
def start() -> Iterator[Callable[[Process], Process]]:
    """Starts a process; what still runs after the test is ended."""
    yield from processes()


def _missing_servers() -> list[str]:
    return [kind for kind, server in SERVERS.items() if not server.available()]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for kind in _missing_servers():
        terminalreporter.section(f"THE {kind.upper()} HALF OF THE TESTS WAS SKIPPED", red=True, bold=True)
        terminalreporter.line(SERVERS[kind].available().reason)


def pytest_sessionfinish(session: pytest.Session) -> None:
    if os.environ.get("CI") and _missing_servers():
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
