"""Decides what may be stored as an event: only what every engine keeps and gives back byte for byte."""

import json
import re
import unicodedata
from typing import Any, NoReturn

from tidings.errors import EventRefused
from tidings.model.event import EventLimits, NewEvent

DEEPEST = 31
"""MariaDB's JSON_VALID refuses the 32nd level, whatever the settings allow."""
LARGEST = 1024 * 1024
"""The tables refuse more than this."""

_VISIBLE = re.compile(r"[!-~]*")
_INVISIBLE = {"Cc", "Cs", "Zl", "Zp"}
_STRING_OR_BRACKET = re.compile(r'"(?:[^"\\]|\\.)*"|([\[{])|[\]}]')
# A pair is one escape; what then starts like a half of one stands alone. MariaDB refuses those, PostgreSQL does not.
_ESCAPE = re.compile(r"\\(?:u[dD][89abAB]..\\u[dD][c-fC-F]|(u[dD][89a-fA-F])|.)")


def accept(
    event_type: str,
    payload: Any,
    *,
    correlation_id: str,
    limits: EventLimits,
    external_id: str | None = None,
    event_domain: str = "default",
    event_stream: str = "",
) -> NewEvent:
    """The event as it will be stored, or EventRefused. JSON text (str, bytes) stays as it is; values become JSON."""
    return NewEvent(
        event_type=_no_pattern(_name(event_type, "event_type", 100), "event_type"),
        payload=_payload(payload, limits),
        external_id=None if external_id is None else _external_id(external_id),
        event_domain=_no_pattern(_name(event_domain, "event_domain", 100), "event_domain"),
        event_stream=_no_pattern(_name(event_stream, "event_stream", 100, may_be_empty=True), "event_stream"),
        correlation_id=_name(correlation_id, "correlation_id", 128),
    )


def _name(text: Any, field: str, longest: int, *, may_be_empty: bool = False) -> str:
    if not isinstance(text, str):
        _refuse(field, f"is a {type(text).__name__}, not a text")
    if not text and not may_be_empty:
        _refuse(field, "is empty")
    if len(text) > longest:
        _refuse(field, f"has {len(text)} characters; at most {longest} are kept")
    if not _VISIBLE.fullmatch(text):
        _refuse(field, f"is {text!r}", "Use visible ASCII characters, without spaces.")
    return text


def _no_pattern(text: str, field: str) -> str:
    if "*" in text:
        _refuse(field, f"is {text!r}", "Only the patterns of routes and subscriptions have a * in them.")
    return text


def _external_id(text: Any) -> str:
    if not isinstance(text, str):
        _refuse("external_id", f"is a {type(text).__name__}, not a text")
    if not text:
        _refuse("external_id", "is empty", "Leave it out when there is none.")
    if len(text) > 255:
        _refuse("external_id", f"has {len(text)} characters; at most 255 are kept")
    if not text.isprintable() and any(unicodedata.category(character) in _INVISIBLE for character in text):
        _refuse("external_id", f"is {text!r}", "Leave out control characters and line breaks.")
    return text


def _payload(payload: Any, limits: EventLimits) -> str:
    given_as_text = isinstance(payload, str | bytes | bytearray | memoryview)
    text = _decoded(payload) if given_as_text else _serialised(payload)
    _check_size(text, min(limits.max_payload, LARGEST))
    if given_as_text:
        _check_json(text)
    _check_depth(text, min(limits.max_nesting, DEEPEST))
    if "\\u" in text and any(match[1] for match in _ESCAPE.finditer(text)):
        _refuse("payload", "has half a surrogate pair in it, such as \\ud800", "Write both halves, or neither.")
    return text


def _decoded(payload: str | bytes | bytearray | memoryview) -> str:
    if isinstance(payload, str):
        return payload
    try:
        return bytes(payload).decode("utf-8")
    except UnicodeDecodeError as error:
        _refuse("payload", f"is no UTF-8 from byte {error.start} on", "Send JSON as UTF-8.")


def _serialised(payload: Any) -> str:
    try:
        return json.dumps(payload, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except RecursionError:
        _refuse("payload", "is nested too deep")
    except (TypeError, ValueError) as error:
        _refuse(
            "payload",
            f"can't be written as JSON: {error}",
            "Give dicts, lists, texts, finite numbers, booleans and None, or JSON text that you made yourself.",
        )


def _check_size(text: str, most: int) -> None:
    try:
        size = len(text) if text.isascii() else len(text.encode())
    except UnicodeEncodeError:
        _refuse("payload", "has half a surrogate pair in it, which no UTF-8 can say")
    if size > most:
        _refuse("payload", f"has {size} bytes; at most {most} are accepted", "Keep large things elsewhere; send where.")


def _check_json(text: str) -> None:
    if text.startswith("\ufeff"):
        _refuse("payload", "begins with a byte order mark", "Send JSON as UTF-8 without one.")
    try:
        # The numbers stay text: how large they are is between publisher and receiver.
        json.loads(text, parse_int=str, parse_float=str, parse_constant=_no_constant)
    except RecursionError:
        _refuse("payload", "is nested too deep")
    except ValueError as error:
        _refuse(
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
            _refuse("payload", f"is nested deeper than {most} levels", "Flatten it.")


def _refuse(field: str, what: str, remedy: str = "") -> NoReturn:
    raise EventRefused(f"{field} {what}.", remedy, field=field)
