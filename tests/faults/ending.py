"""How a story ends: what stands in the tables then, compared with how it ends when nobody is killed."""

from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True)
class Ending:
    def differences(self, other: Self) -> list[str]:
        return [
            f"{name}: {value!r} instead of {vars(other)[name]!r}"
            for name, value in vars(self).items()
            if value != vars(other)[name]
        ]
