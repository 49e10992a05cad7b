"""The generated passwords of the logins, in a file that only its owner can read. A password never changes."""

import json
import secrets
from pathlib import Path

from tidings.db.embedded.durable import write_durably
from tidings.db.embedded.locks import EXCLUSIVE, take
from tidings.errors import EmbeddedServerFailed

NAME = "passwords.json"
LOCK_DEADLINE = 30.0


class Passwords:
    def __init__(self, data_dir: Path) -> None:
        self.path = data_dir / NAME
        self.lock = data_dir / "passwords.lock"

    def password(self, login: str) -> str:
        """The password of `login`, made up on the first request."""
        if (known := self.known().get(login)) is not None:
            return known
        with take(self.lock, EXCLUSIVE, within=LOCK_DEADLINE):
            passwords = self.known()  # again: another process may have been faster
            if login not in passwords:
                passwords[login] = secrets.token_urlsafe(24)
                write_durably(self.path, json.dumps(passwords, indent=2) + "\n")
            return passwords[login]

    def insist_on(self, login: str) -> None:
        """For a login that the server knows already: a new password would only be refused there."""
        if login not in self.known():
            raise EmbeddedServerFailed(
                f"{self.path} is missing or has no password for `{login}`.",
                f"Put it back from a backup, or move {self.path.parent} away to begin with an empty database.",
            )

    def known(self) -> dict[str, str]:
        try:
            passwords: dict[str, str] = json.loads(self.path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except ValueError as error:
            raise EmbeddedServerFailed(
                f"{self.path} can't be understood: {error}", "Put it back from a backup."
            ) from error
        return passwords
