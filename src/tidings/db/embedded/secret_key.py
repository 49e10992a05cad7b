"""The generated key that seals secrets, in a file that only its owner can read. It is made once and never changes."""

import secrets
from pathlib import Path

from tidings.db.embedded.durable import write_durably
from tidings.db.embedded.locks import EXCLUSIVE, take
from tidings.errors import EmbeddedServerFailed

NAME = "secret.key"
LOCK_DEADLINE = 30.0
_BYTES = 32


def known_key(data_dir: Path) -> str | None:
    try:
        key = (data_dir / NAME).read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        return None
    except UnicodeDecodeError:
        key = ""
    # It is written whole or not at all: what is shorter was not written by us.
    if len(key) < _BYTES or not key.isascii():
        raise EmbeddedServerFailed(
            f"{data_dir / NAME} holds no key that was made here.",
            "Put it back from a backup: what it sealed can't be opened without it.",
        )
    return key


def secret_key(data_dir: Path) -> str:
    """Made up on the first request."""
    if (known := known_key(data_dir)) is not None:
        return known
    with take(data_dir / "secret.lock", EXCLUSIVE, within=LOCK_DEADLINE):
        if (known := known_key(data_dir)) is not None:  # another process was faster
            return known
        key = secrets.token_urlsafe(_BYTES)
        write_durably(data_dir / NAME, f"{key}\n")
        return key
