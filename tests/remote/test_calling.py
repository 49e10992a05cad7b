"""When a call is made again, and how long it is waited before."""

import pytest

from tidings.remote.calling import FIRST_PAUSE, LONGEST_PAUSE, Call, pause_before_repeating
from tidings.remote.errors import ApiUnreachable, error_of

SAFE = Call[None]("GET", "/", None)
UNSAFE = Call[None]("POST", "/", None, is_repeatable=False)
UNKNOWN = b'{"code": "outcome_unknown"}'


@pytest.mark.parametrize(
    ("status", "body", "safe", "unsafe"),
    [
        (503, b'{"code": "unavailable"}', True, True),
        (503, UNKNOWN, True, False),
        (429, b"{}", True, True),
        (502, b"<html>", True, False),
        (504, b"", True, False),
        (500, b"{}", False, False),
        (404, b"{}", False, False),
        (422, b"[]", False, False),
    ],
)
def test_only_what_can_not_be_done_twice_is_repeated(status: int, body: bytes, safe: bool, unsafe: bool) -> None:
    error = error_of(status, body, {})
    assert (pause_before_repeating(SAFE, error, True, 0, 0.5) >= 0) == safe
    assert (pause_before_repeating(UNSAFE, error, True, 0, 0.5) >= 0) == unsafe


def test_what_was_never_sent_may_always_be_sent_again() -> None:
    away = ApiUnreachable("nobody")
    assert pause_before_repeating(UNSAFE, away, False, 0, 0.5) > 0
    assert pause_before_repeating(UNSAFE, away, True, 0, 0.5) < 0


def test_pauses_grow_and_obey_the_server() -> None:
    away = ApiUnreachable("nobody")
    pauses = [pause_before_repeating(SAFE, away, True, attempt, 1.0) for attempt in range(12)]
    assert pauses[:3] == [FIRST_PAUSE, 2 * FIRST_PAUSE, 4 * FIRST_PAUSE]
    assert pauses[-1] == LONGEST_PAUSE
    assert pause_before_repeating(SAFE, away, True, 0, 0.0) == FIRST_PAUSE / 2
    assert pause_before_repeating(SAFE, error_of(429, b"{}", {"retry-after": "7"}), True, 0, 0.5) == 7
    # Nobody waits for an hour in a call.
    assert pause_before_repeating(SAFE, error_of(429, b"{}", {"retry-after": "3600"}), True, 0, 0.5) < 0


def test_an_answer_of_somebody_else_is_an_error_too() -> None:
    error = error_of(502, b"<html>Bad Gateway", {"x-request-id": "r-1", "retry-after": "soon"})
    assert (error.status, error.code, error.request_id, error.retry_after) == (502, "unknown", "r-1", None)


@pytest.mark.parametrize("errors", [b"null", b'"no"', b'["no"]', b'{"a": "no"}', b"7"])
def test_what_somebody_else_calls_errors_may_be_anything(errors: bytes) -> None:
    error = error_of(503, b'{"errors": ' + errors + b"}", {})
    assert (error.status, error.errors) == (503, ())
