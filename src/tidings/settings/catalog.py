"""Every setting there is: by section and key in the file, elsewhere by a name unique over all sections."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Annotated, get_origin, get_type_hints

from tidings.settings.sections import Settings
from tidings.settings.texts import read_database_url

ROLE_URLS = "database.urls"


@dataclass(frozen=True)
class Setting:
    section: str
    key: str
    name: str
    read: Callable[[object], object]

    @property
    def in_file(self) -> str:
        return f"[{self.section}] {self.key}"

    @property
    def in_environment(self) -> str:
        return f"TIDINGS_{self.name.upper()}"

    @property
    def as_flag(self) -> str:
        return f"--{self.name.replace('_', '-')}"


def all_settings(roles: Collection[str] = ()) -> list[Setting]:
    """In the order of the sections; one database URL for each role at the end."""
    role_urls = (Setting(ROLE_URLS, role, f"database_url_{role}", read_database_url) for role in roles)
    return [*_section_settings(), *role_urls]


def section_names() -> list[str]:
    return [*get_type_hints(Settings), ROLE_URLS]


def did_you_mean(name: str, known: Collection[str], places: Mapping[str, str] = {}) -> str:
    """Ends a message about an unknown name; a known one is shown by its place, if it has one."""
    near = get_close_matches(name[:100], known, n=1)
    return f"; did you mean {places.get(near[0], near[0])}?" if near else ""


def quoted_if_odd(name: str) -> str:
    """A name from outside, kept from breaking the line it is shown in."""
    return name if name.isascii() and name.replace("-", "_").isidentifier() else repr(name[:100])


def _section_settings() -> Iterable[Setting]:
    for section, section_type in get_type_hints(Settings).items():
        for key, hint in get_type_hints(section_type, include_extras=True).items():
            if get_origin(hint) is Annotated:
                yield Setting(section, key, key, hint.__metadata__[0])
