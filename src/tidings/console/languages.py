"""The words of the console: a folder for each language, a file for each area, chosen by a cookie or by the browser."""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tidings.decisions.answers import ANSWERS
from tidings.decisions.keys import WRONG_KEYS

WORDS = Path(__file__).parent / "words"
DEFAULT = "en"
LANGUAGES: Mapping[str, str] = {"en": "English", "zh-Hant": "繁體中文"}
OWN: Mapping[str, Mapping[str, str]] = {"why": ANSWERS, "wrong_key": WRONG_KEYS}
"""What the product itself says in English, by the areas in which other languages have their words for it."""
# What browsers call them, in lower case.
_KNOWN_AS = {"en": "en", **dict.fromkeys(("zh", "zh-hant", "zh-tw", "zh-hk", "zh-mo"), "zh-Hant")}


@dataclass(frozen=True)
class Words:
    """`words("events.title")`, `words("shared.ago", duration="3 s")`. What a language lacks is said by its name."""

    language: str
    texts: Mapping[str, str]

    def __call__(self, name: str, /, **values: Any) -> str:
        text = self.texts.get(name, name)
        return text.format_map(values) if values else text

    def has(self, name: str) -> bool:
        return name in self.texts

    def of_status(self, status: str) -> str:
        """A status in words; one that nobody translated stays as it is."""
        return self.texts.get(f"shared.status.{status}", status)


@cache
def words_of(language: str) -> Words:
    own = OWN if language == DEFAULT else {}
    texts = {f"{area}.{name}": text for area, said in own.items() for name, text in said.items()}
    for path in sorted((WORDS / language).glob("*.toml")):
        texts |= _flat(tomllib.loads(path.read_text("utf-8")), f"{path.stem}.")
    return Words(language, texts)


def chosen(cookie: str, accepted: str) -> str:
    """By the cookie, if there is one; else the first of what the browser likes best."""
    if cookie in LANGUAGES:
        return cookie
    for _, tag in sorted(_wishes(accepted[:1000]), key=lambda wish: -wish[0]):
        if language := _KNOWN_AS.get(tag) or _KNOWN_AS.get("-".join(tag.split("-")[:2])) or _english(tag):
            return language
    return DEFAULT


def _english(tag: str) -> str:
    return "en" if tag.startswith("en-") else ""


def _wishes(accepted: str) -> Iterator[tuple[float, str]]:
    for part in accepted.split(","):
        tag, _, quality = part.strip().lower().partition(";q=")
        try:
            weight = float(quality or 1)
        except ValueError:
            continue
        if tag and weight > 0:
            yield weight, tag


def _flat(table: Mapping[str, Any], prefix: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in table.items():
        if isinstance(value, Mapping):
            found |= _flat(value, f"{prefix}{name}.")
        else:
            found[f"{prefix}{name}"] = str(value)
    return found
