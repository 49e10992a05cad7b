"""docs/reference/settings.md, from `defaults.toml` and its comments."""

import re
from collections.abc import Iterator

from tidings.settings.assembly import defaults_text
from tidings.settings.catalog import all_settings

_SECTION = re.compile(r"\[(.+)\]")
_KEY = re.compile(r"(\w+) = (.+)")
_HEAD = "# Settings\n\n<!-- Generated from src/tidings/settings/defaults.toml by `make docs`. -->"
_TABLE_HEAD = "\n| setting | default | environment | meaning |\n|---|---|---|---|"


def settings_reference() -> str:
    """The whole page."""
    return "\n".join(_rendered()) + "\n"


def _rendered() -> Iterator[str]:
    environment, head = {setting.key: setting.in_environment for setting in all_settings()}, ""
    yield _HEAD
    for line, comment in _commented_lines():
        if section := _SECTION.fullmatch(line):
            yield f"\n## [{section[1]}]\n\n{comment}"
            head = f"{_TABLE_HEAD}\n"
        elif key := _KEY.fullmatch(line):
            yield f"{head}| `{key[1]}` | `{key[2]}` | `{environment[key[1]]}` | {comment} |"
            head = ""
        elif comment:
            yield f"\n{comment}"


def _commented_lines() -> Iterator[tuple[str, str]]:
    """A comment belongs to the line right below it."""
    comment: list[str] = []
    for line in defaults_text().splitlines():
        if line.startswith("#"):
            comment.append(line.removeprefix("#").strip())
        else:
            yield line, " ".join(comment)
            comment = []
