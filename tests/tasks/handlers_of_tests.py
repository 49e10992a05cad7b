"""Types whose annotations are texts, as in a module that begins with `from __future__ import annotations`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Mail:
    to: str
    copies: int = 1


def send(mail: Mail) -> None:
    pass
