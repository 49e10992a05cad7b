"""Holding a server: starts, joins or adopts it under the switch, and keeps the lock that makes it stay."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Self
from urllib.parse import quote

from tidings.db.embedded.cluster import SUPERUSER
from tidings.db.embedded.locks import EXCLUSIVE, SHARED, Lock, take
from tidings.db.embedded.passwords import Passwords
from tidings.db.embedded.record import Record
from tidings.db.embedded.secret_key import known_key, secret_key
from tidings.db.embedded.starting import bring_up, find_server
from tidings.db.embedded.state import HOLDERS, SWITCH, make_data_dir
from tidings.errors import EmbeddedServerFailed

SWITCH_DEADLINE = 300.0  # longer than any one start or stop that another process may be in


class EmbeddedServer:
    """The server of a data directory: held, when it comes from `hold`; only looked at, when from `peek`."""

    superuser = SUPERUSER

    def __init__(self, data_dir: Path, held: Lock | None = None) -> None:
        self.data_dir = data_dir
        self._held = held

    @property
    def port(self) -> int:
        """Read anew each time: a server that had to be started again may have found its old port taken."""
        with _explained(self.data_dir):
            record = Record.read(self.data_dir)
        if record is None or record.port is None:
            raise EmbeddedServerFailed(f"{self.data_dir} has no server any more.", "Was it deleted?")
        return record.port

    @property
    def running(self) -> bool:
        """Also while it is starting or stopping. When it no longer is, the directory may be deleted."""
        with _explained(self.data_dir):
            return find_server(self.data_dir) is not None

    def password(self, login: str) -> str:
        """Made up on the first request. The caller creates the login itself."""
        with _explained(self.data_dir):
            passwords = Passwords(self.data_dir)
            passwords.insist_on(self.superuser)
            return passwords.password(login)

    def secret_keys(self, given: Sequence[str]) -> list[str]:
        """The key ring: what was given, then the key that was made here, if need be now."""
        with _explained(self.data_dir):
            own = known_key(self.data_dir) if given else secret_key(self.data_dir)
        return [*given, own] if own else [*given]

    def url(self, login: str, database: str = "tidings") -> str:
        who, where = quote(login, safe=""), quote(database, safe="")
        return f"postgresql://{who}:{self.password(login)}@127.0.0.1:{self.port}/{where}"

    def close(self) -> None:
        """Lets go. The server is stopped soon after, unless somebody else holds it."""
        if self._held is not None:
            self._held.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def hold(data_dir: Path, *, progress: Callable[[str], None] | None = None) -> EmbeddedServer:
    """Blocks until the server accepts connections. `progress` is told in short sentences what takes time."""
    data_dir = data_dir.resolve()
    with _explained(data_dir):
        make_data_dir(data_dir)
        with take(data_dir / SWITCH, EXCLUSIVE, within=SWITCH_DEADLINE):
            held = take(data_dir / HOLDERS, SHARED, within=SWITCH_DEADLINE)
            try:
                bring_up(data_dir, progress or (lambda sentence: None))
            except BaseException:
                held.release()
                raise
    return EmbeddedServer(data_dir, held)


def peek(data_dir: Path) -> EmbeddedServer | None:
    """The server of a directory that has been initialised, running or not. Neither starts nor holds it."""
    data_dir = data_dir.resolve()
    with _explained(data_dir):
        record = Record.read(data_dir)
    return EmbeddedServer(data_dir) if record and record.port else None


@contextmanager
def _explained(data_dir: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise EmbeddedServerFailed(
            f"The embedded database in {data_dir} can't be used: {error}",
            "Use the account that made this directory, see that the disk isn't full, "
            "or choose another directory with TIDINGS_DATA_DIR.",
        ) from error
