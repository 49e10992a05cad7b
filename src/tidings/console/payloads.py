"""A payload as people read it: laid out, or as it was written. Always text, and no more of it than a page can bear."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

MOST = 64 * 1024
_DEEPEST = 40
_TOKENS = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?|[{}\[\],:]|[^\s{}\[\],:"]+', re.DOTALL)


@dataclass(frozen=True)
class Shown:
    """`is_cut`: there is more than is shown; `size` is that of all of it, in bytes."""

    text: str
    is_cut: bool
    size: int


def shown(payload: str, *, raw: bool = False, most: int = MOST) -> Shown:
    part = payload[:most]
    text = part if raw else laid_out(part)[: 4 * most]
    return Shown(text, len(part) < len(payload) or len(text) == 4 * most, len(payload.encode()))


def laid_out(text: str) -> str:
    """JSON with a line for each of its parts. Nothing is read: numbers, escapes and doubled names stay as they are."""
    return "".join(_pieces(text))


def _pieces(text: str) -> Iterator[str]:
    depth, is_new = 0, False
    for match in _TOKENS.finditer(text):
        token = match[0]
        if token in ("}", "]"):
            depth = max(0, depth - 1)
            yield token if is_new else f"{_line(depth)}{token}"
            is_new = False
            continue
        if is_new:
            yield _line(depth)
        is_new = token in ("{", "[")
        depth += is_new
        yield f",{_line(depth)}" if token == "," else ": " if token == ":" else token


def _line(depth: int) -> str:
    return "\n" + "  " * min(depth, _DEEPEST)
