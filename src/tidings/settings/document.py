"""Reads a TOML file of settings. A finding is a given setting, or the text of a problem with its place."""

import tomllib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tidings.settings.catalog import ROLE_URLS, Setting, did_you_mean, quoted_if_odd, section_names


@dataclass(frozen=True)
class Given:
    setting: Setting
    place: str
    raw: object = field(repr=False)


Finding = Given | str


def findings_in_file(path: Path, file: str, known: Collection[Setting]) -> Iterator[Finding]:
    """`file` is how messages call it."""
    try:
        document = tomllib.loads(_text_of(path))
    except OSError as error:
        yield f"{file}: can't be read: {error.strerror or error}"
    except RecursionError:
        yield f"{file}: is nested too deeply"
    except ValueError as error:
        yield f"{file}: {error}"
    else:
        yield from findings_in_document(document, file, known)


def findings_in_document(document: Mapping[str, Any], file: str, known: Collection[Setting]) -> Iterator[Finding]:
    yield from _findings_in_table(document, "", file, {(each.section, each.key): each for each in known})


def _findings_in_table(
    table: Mapping[str, Any], section: str, file: str, known: Mapping[tuple[str, str], Setting]
) -> Iterator[Finding]:
    for key, raw in table.items():
        inner = f"{section}.{key}" if section else key
        setting = known.get((section, key))
        if setting:
            yield Given(setting, f"{file}: {setting.in_file}", raw)
        elif inner not in section_names():
            yield f"{file}: {_unknown(section, key, raw, known)}"
        elif isinstance(raw, dict):
            yield from _findings_in_table(raw, inner, file, known)
        else:
            yield f"{file}: {inner} is a section; write [{inner}] on a line of its own and its settings below"


def _unknown(section: str, key: str, raw: object, known: Mapping[tuple[str, str], Setting]) -> str:
    name = quoted_if_odd(key)
    if section == ROLE_URLS:
        roles = [role for (inside, role) in known if inside == ROLE_URLS]
        return f"[{section}] {name}: there is no such role{did_you_mean(key, roles)}"
    if isinstance(raw, dict):
        header = f"[{section}.{name}]" if section else f"[{name}]"
        headers = [f"[{each}]" for each in section_names()]
        return f"{header}: there is no such section{did_you_mean(header, headers)}"
    place = f"[{section}] {name}" if section else name
    keys = {setting.key: setting.in_file for setting in known.values() if setting.section != ROLE_URLS}
    return f"{place}: there is no such setting here{did_you_mean(key, keys, keys)}"


def _text_of(path: Path) -> str:
    data = path.read_bytes()
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = error.start - data.rfind(b"\n", 0, error.start)
        raise ValueError(f"is not UTF-8 text (at line {line}, column {column})") from None
