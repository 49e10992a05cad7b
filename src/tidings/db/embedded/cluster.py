"""Makes the cluster and says where it is. It is made aside and then renamed: what is there is whole."""

import hashlib
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tidings.db.embedded.account import Account, account_for
from tidings.db.embedded.binaries import Binaries, elsewhere, find_binaries, reachable
from tidings.db.embedded.durable import sync_directory, write_durably
from tidings.db.embedded.passwords import Passwords
from tidings.db.embedded.record import Record
from tidings.db.embedded.server_process import quiet_environment
from tidings.errors import EmbeddedServerFailed

SUPERUSER = "postgres"
INITDB_DEADLINE = 120.0


def prepare(data_dir: Path, say: Callable[[str], None]) -> Record:
    """The record of a cluster that can be started, made now if there is none yet."""
    record = Record.read(data_dir)
    usual = data_dir / "cluster"
    if record is None and not usual.exists():
        return _make(data_dir, say)
    cluster = record.cluster_in(data_dir) if record else usual
    _insist_that_it_is_whole(data_dir, cluster)
    _clear_leftovers(cluster)
    made_by = int((cluster / "PG_VERSION").read_text())
    binaries = find_binaries(made_by, recorded=Path(record.binaries) if record else None)
    binaries = reachable(binaries, account_for(cluster), say)
    _own_what_root_restored(cluster)
    renewed = _record(data_dir, cluster, binaries, record.port if record else None)
    if renewed != record:
        renewed.write(data_dir)
    return renewed


def _make(data_dir: Path, say: Callable[[str], None]) -> Record:
    write_durably(data_dir / ".gitignore", "*\n")  # the passwords must not end up in a repository
    account = account_for(data_dir)
    binaries = reachable(find_binaries(), account, say)
    cluster = _place(data_dir, account)
    _clear_leftovers(cluster)
    say(f"initialising PostgreSQL {binaries.version} in {cluster}")
    _initdb(cluster, binaries, account, Passwords(data_dir).password(SUPERUSER))
    record = _record(data_dir, cluster, binaries, None)
    record.write(data_dir)
    return record


def _place(data_dir: Path, account: Account) -> Path:
    if account.can_enter(data_dir):
        return data_dir / "cluster"
    cluster = elsewhere() / hashlib.sha256(str(data_dir).encode()).hexdigest()[:16]
    if cluster.exists():  # of a data directory that was deleted since: not ours to destroy
        cluster.rename(cluster.with_name(f"{cluster.name}.old-{time.time_ns()}"))
    return cluster


def _initdb(cluster: Path, binaries: Binaries, account: Account, password: str) -> None:
    aside = Path(tempfile.mkdtemp(prefix=f"{cluster.name}.new-", dir=cluster.parent))
    try:
        made, password_file = aside / "made", aside / "password"
        password_file.touch(mode=0o600)
        password_file.write_text(password + "\n", encoding="utf-8")
        account.own(password_file, aside)
        _run_initdb(made, password_file, binaries, account)
        made.rename(cluster)
        sync_directory(cluster.parent)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _run_initdb(made: Path, password_file: Path, binaries: Binaries, account: Account) -> None:
    command = [str(binaries.folder / "initdb"), "-D", str(made), "-U", SUPERUSER, f"--pwfile={password_file}"]
    command += ["-A", "scram-sha-256", "--no-locale", "-E", "UTF8"]
    try:
        subprocess.run(
            command,
            cwd="/",
            env=quiet_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=INITDB_DEADLINE,
            check=True,
            **account.switch(),
        )
    except subprocess.SubprocessError as error:
        said: bytes = getattr(error, "stdout", None) or b"(nothing)"
        last_lines = "\n".join(said.decode(errors="replace").splitlines()[-15:])
        raise EmbeddedServerFailed(
            f"{command[0]} made no cluster, running as {account.name}: {error}\nIt said last:\n{last_lines}",
            "Put right what it says, or choose another data directory with TIDINGS_DATA_DIR.",
        ) from error


def _clear_leftovers(cluster: Path) -> None:
    """Of a start that was killed. They have the superuser's password in them."""
    for leftover in cluster.parent.glob(f"{cluster.name}.new-*"):
        shutil.rmtree(leftover, ignore_errors=True)


def _own_what_root_restored(cluster: Path) -> None:
    in_a_place_of_root = cluster.parent.stat().st_uid == 0  # elsewhere it might be a trap: a link to /etc
    if in_a_place_of_root and cluster.stat().st_uid == 0:
        account_for(cluster).own(*cluster.rglob("*"), cluster)


def _insist_that_it_is_whole(data_dir: Path, cluster: Path) -> None:
    if not (cluster / "PG_VERSION").exists():
        raise EmbeddedServerFailed(
            f"The cluster of {data_dir} should be in {cluster}, but isn't there.",
            f"Put it back from a backup, or move {data_dir} away to begin with an empty database.",
        )
    Passwords(data_dir).insist_on(SUPERUSER)


def _record(data_dir: Path, cluster: Path, binaries: Binaries, port: int | None) -> Record:
    inside = cluster.is_relative_to(data_dir)
    place = cluster.relative_to(data_dir) if inside else cluster
    return Record(str(place), str(binaries.folder), binaries.major, port)
