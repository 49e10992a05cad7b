"""Reads what stands between fences on a page: the language, the words behind it, the text."""

import re
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(r"^(?P<indent> *)```(?P<head>[^\n`]+)\n(?P<text>.*?)^(?P=indent)```$", re.MULTILINE | re.DOTALL)
_ENGINES = {"postgresql", "mariadb"}


@dataclass(frozen=True)
class Block:
    """`words` say what is done with it: run, beside, first, until, a file's name, an engine, exit=2."""

    page: Path
    line: int
    language: str
    words: frozenset[str]
    text: str

    def is_for(self, engine: str) -> bool:
        return not self.words & _ENGINES or engine in self.words

    @property
    def exit(self) -> int:
        return next((int(word.removeprefix("exit=")) for word in self.words if word.startswith("exit=")), 0)

    @property
    def file(self) -> str:
        return next((word for word in self.words if re.fullmatch(r"\w+\.(toml|py)", word)), "")

    def __str__(self) -> str:
        return f"{self.page.name}:{self.line}"


def blocks(page: Path) -> list[Block]:
    text = page.read_text("utf-8")
    found = []
    for one in _BLOCK.finditer(text):
        language, *words = one["head"].split()
        line = text[: one.start()].count("\n") + 1
        found.append(Block(page, line, language, frozenset(words), dedent(one["text"])))
    return found
