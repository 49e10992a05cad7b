"""What may be stored of a text that somebody gave: only what every engine keeps and gives back byte for byte.

Refusals are InputRefused here; `RefusingAs` makes them those of the thing that was asked for.
"""

import json
import re
import unicodedata
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any, NoReturn

import orjson

from tidings.errors import InputRefused
from tidings.model.event import EventLimits

DEEPEST = 31
"""MariaDB's JSON_VALID refuses the 32nd level, whatever the settings allow."""
LARGEST = 1024 * 1024
"""The tables refuse more than this."""

LONGEST_NAME, LONGEST_REASON = 100, 500

_VISIBLE = re.compile(r"[!-~]*")
_INVISIBLE = {"Cc", "Cs", "Zl", "Zp"}
_STRING_OR_BRACKET = re.compile(r'"(?:[^"\\]|\\.)*"|([\[{])|[\]}]')
# A pair is one escape; what then starts like a half of one stands alone. MariaDB refuses those, PostgreSQL does not.
_ESCAPE = re.compile(r"\\(?:u[dD][89abAB]..\\u[dD][c-fC-F]|(u[dD][89a-fA-F])|.)")


def visible_name(text: Any, field: str, longest: int, *, may_be_empty: bool = False) -> str:
    if not isinstance(text, str):
        refuse(field, f"is a {type(text).__name__}, not a text")
    if not text and not may_be_empty:
        refuse(field, "is empty")
    if len(text) > longest:
        refuse(field, f"has {len(text)} characters; at most {longest} are kept")
    if not _VISIBLE.fullmatch(text):
        refuse(field, f"is {text!r}", "Use visible ASCII characters, without spaces.")
    return text


def printable_text(text: Any, field: str, longest: int, if_empty: str = "") -> str:
    """Any script, but nothing that can't be seen, and not nothing."""
    if not isinstance(text, str):
        refuse(field, f"is a {type(text).__name__}, not a text")
    if not text:
        refuse(field, "is empty", if_empty)
    if len(text) > longest:
        refuse(field, f"has {len(text)} characters; at most {longest} are kept")
    if not text.isprintable() and any(unicodedata.category(character) in _INVISIBLE for character in text):
        refuse(field, f"is {text!r}", "Leave out control characters and line breaks.")
    return text


def one_line(text: str, field: str, longest: int) -> str:
    """What people write for people; may be nothing."""
    if len(text) > longest:
        refuse(field, f"has {len(text)} characters; at most {longest} are kept", "Say it in one line.")
    # A lone surrogate is not printable either, and no database takes it.
    if not text.isprintable():
        refuse(field, "has characters that can't be printed", "Say it in one line.")
    return text


def json_payload(payload: Any, limits: EventLimits) -> str:
    """JSON text (str, bytes) as it is; values become JSON."""
    given_as_text = isinstance(payload, str | bytes | bytearray | memoryview)
    text = _decoded(payload) if given_as_text else _serialised(payload)
    _check_size(text, min(limits.max_payload, LARGEST))
    if given_as_text:
        _check_json(text)
    _check_depth(text, min(limits.max_nesting, DEEPEST))
    if "\\u" in text and any(match[1] for match in _ESCAPE.finditer(text)):
        refuse("payload", "has half a surrogate pair in it, such as \\ud800", "Write both halves, or neither.")
    return text


def _decoded(payload: str | bytes | bytearray | memoryview) -> str:
    if isinstance(payload, str):
        return payload
    try:
        return bytes(payload).decode("utf-8")
    except UnicodeDecodeError as error:
        refuse("payload", f"is no UTF-8 from byte {error.start} on", "Send JSON as UTF-8.")


def _serialised(payload: Any) -> str:
    try:
        return json.dumps(payload, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except RecursionError:
        refuse("payload", "is nested too deep")
    except (TypeError, ValueError) as error:
        refuse(
            "payload",
            f"can't be written as JSON: {error}",
            "Give dicts, lists, texts, finite numbers, booleans and None, or JSON text that you made yourself.",
        )


def _check_size(text: str, most: int) -> None:
    try:
        size = len(text) if text.isascii() else len(text.encode())
    except UnicodeEncodeError:
        refuse("payload", "has half a surrogate pair in it, which no UTF-8 can say")
    if size > most:
        refuse("payload", f"has {size} bytes; at most {most} are accepted", "Keep large things elsewhere; send where.")


def _check_json(text: str) -> None:
    if text.startswith("\ufeff"):
        refuse("payload", "begins with a byte order mark", "Send JSON as UTF-8 without one.")
    # It takes a sixth of the time and nothing that is no JSON, but not all that is: no number above 1e308, say.
    with suppress(orjson.JSONDecodeError):
        orjson.loads(text)
        return
    try:
        # The numbers stay text: how large they are is between publisher and receiver.
        json.loads(text, parse_int=str, parse_float=str, parse_constant=_no_constant)
    except RecursionError:
        refuse("payload", "is nested too deep")
    except ValueError as error:
        refuse(
            "payload",
            f"is no JSON: {error}",
            "A str or bytes is taken as JSON text; for a plain text as payload give json.dumps(text).",
        )


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


def _check_depth(text: str, most: int) -> None:
    if text.count("[") + text.count("{") <= most:
        return
    depth = 0
    for match in _STRING_OR_BRACKET.finditer(text):
        if match[0][0] != '"':
            depth += 1 if match[1] else -1
        if depth > most:
            refuse("payload", f"is nested deeper than {most} levels", "Flatten it.")


def refuse(field: str, what: str, remedy: str = "") -> NoReturn:
    raise InputRefused(f"{field} {what}.", remedy, field=field)


@dataclass
class RefusingAs:
    """What is refused inside is refused as this kind."""

    kind: type[InputRefused]

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, InputRefused):
            raise self.kind(error.what, error.remedy, field=error.field) from error
