"""Signatures of Standard Webhooks, version 1: who sent a message, and that nobody changed it. For both ends."""

import hmac
from binascii import b2a_base64
from collections.abc import Iterable, Mapping, Sequence
from time import time

from tidings.decisions.secret_keys import key_of
from tidings.errors import SignatureRefused

_ID, _TIMESTAMP, _SIGNATURE = "webhook-id", "webhook-timestamp", "webhook-signature"
_VERSION = "v1"
_BASE32 = "abcdefghijklmnopqrstuvwxyz234567"
# Two characters at a time: the library's own way costs more than the HMAC.
_BASE32_PAIRS = [first + second for first in _BASE32 for second in _BASE32]


def webhook_id(installation_id: str, event_id: int, subscription_id: int) -> str:
    """The same for each attempt, requeue and resend of an event to a subscription; receivers know duplicates by it.

    `msg_` and the first 26 characters, in small letters, of the base32 (RFC 4648) of an HMAC-SHA256.
    """
    digest = hmac.digest(installation_id.encode(), b"%d:%d" % (event_id, subscription_id), "sha256")
    bits = int.from_bytes(digest[:17], "big") >> 6  # 26 characters are 130 bits
    return "msg_" + "".join([_BASE32_PAIRS[bits >> shift & 1023] for shift in range(120, -1, -10)])


def signature_headers(
    webhook_id: str, timestamp: int, body: bytes, secrets: Sequence[str]
) -> tuple[tuple[str, str], ...]:
    """One signature for each secret that is valid now, newest first, so that receivers may change theirs in peace."""
    signed = _signed(webhook_id, str(timestamp), body)
    signatures = " ".join([f"{_VERSION},{_signature(signed, secret)}" for secret in secrets])
    return ((_ID, webhook_id), (_TIMESTAMP, str(timestamp)), (_SIGNATURE, signatures))


def verify(
    headers: Mapping[str, str] | Iterable[tuple[str, str]],
    body: bytes | str,
    secret: str,
    *,
    now: float | None = None,
    tolerance: float = 300,
) -> None:
    """For receivers: raises SignatureRefused unless whoever knows the secret has sent this body, just now.

    Give the body as it came, before anything has parsed it, and look at `webhook-id` to know a message that was
    delivered twice.
    """
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    given = {name.lower(): value for name, value in pairs}
    missing = [name for name in (_ID, _TIMESTAMP, _SIGNATURE) if not given.get(name)]
    if missing:
        raise SignatureRefused(f"The request has no header {missing[0]}.", "It was not sent by Tidings.")
    _check_time(given[_TIMESTAMP], time() if now is None else now, tolerance)
    raw = _bytes(body) if isinstance(body, str) else body
    expected = _signature(_signed(given[_ID], given[_TIMESTAMP], raw), secret).encode()
    candidates = [entry.partition(",") for entry in given[_SIGNATURE].split()]
    # All are compared, each in constant time: how long it takes tells nothing.
    matches = [hmac.compare_digest(expected, _bytes(it)) for version, _, it in candidates if version == _VERSION]
    if not any(matches):
        raise SignatureRefused(
            "No signature of the request fits.", "Check the secret, and that the body is given exactly as it came."
        )


def _check_time(timestamp: str, now: float, tolerance: float) -> None:
    if not (timestamp.isascii() and timestamp.isdigit() and len(timestamp) <= 12):
        raise SignatureRefused(f"The header {_TIMESTAMP} is no time.", "It was not sent by Tidings.")
    if abs(now - int(timestamp)) > tolerance:
        raise SignatureRefused(
            f"The request was signed at another time, more than {tolerance:g} s from now.",
            "If it is no repetition of an old one, check the clocks.",
        )


def _signed(webhook_id: str, timestamp: str, body: bytes) -> bytes:
    return _bytes(f"{webhook_id}.{timestamp}.") + body


def _bytes(text: str) -> bytes:
    """Never fails: what can't be encoded fits no signature."""
    return text.encode(errors="backslashreplace")


def _signature(signed: bytes, secret: str) -> str:
    return b2a_base64(hmac.digest(key_of(secret), signed, "sha256"), newline=False).decode()
