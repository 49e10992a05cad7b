"""`Retry-After` and the signature headers, whatever comes in them; and what is right is understood rightly."""

import base64
import datetime
import hashlib
import hmac
import random
from email.utils import format_datetime

import pytest

from tests.fuzz.mutating import mutated, mutated_texts
from tidings.courier.retry_after import retry_after_seconds
from tidings.courier.signing import signature_headers, verify
from tidings.errors import SignatureRefused

COUNTS = [4_000, pytest.param(1_000_000, marks=[pytest.mark.full, pytest.mark.timeout(1800)])]
NOW = 1_900_000_000.5
DAY = 86_400
DATES = [b"120", b"Sun, 06 Nov 1994 08:49:37 GMT", b"Sunday, 06-Nov-94 08:49:37 GMT", b"Sun Nov  6 08:49:37 1994"]
DATE_WORDS = [b"0", b"-", b"+", b".", b" ", b",", b"GMT", b"Feb", b"31", b"24:00:00", b"9999", b"\xff", b"\0", b"\t"]
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
BODY = b'{"a":  1}'


@pytest.mark.parametrize("count", COUNTS)
def test_any_retry_after_is_a_wait_of_at_most_a_day_or_nothing(count: int) -> None:
    understood = 0
    for value in mutated(DATES, DATE_WORDS, count):
        seconds = retry_after_seconds(value, NOW)
        assert seconds is None or 0 <= seconds <= DAY, value
        understood += seconds is not None
    assert understood > count // 20


def test_every_date_that_python_writes_is_read_to_the_second() -> None:
    chance = random.Random(1)
    for _ in range(2_000):
        ahead = chance.randrange(-100_000, 100_000)
        moment = datetime.datetime.fromtimestamp(int(NOW) + ahead, datetime.UTC)
        value = format_datetime(moment, usegmt=True).encode()
        assert retry_after_seconds(value, int(NOW)) == min(max(ahead, 0), DAY), value


def is_signed(headers: dict[str, str]) -> bool:
    """By HMAC itself, as the standard says it."""
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode("utf-8", "surrogateescape") + BODY
    key = base64.b64decode(SECRET.removeprefix("whsec_"))
    digest = base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()
    return f"v1,{digest}" in headers["webhook-signature"].split()


@pytest.mark.parametrize("count", COUNTS)
def test_no_header_is_believed_that_the_secret_did_not_sign(count: int) -> None:
    good = dict(signature_headers("msg_1", int(NOW), BODY, [SECRET, SECRET]))
    words = ["v1", "v1,", "v1a,", ",", " ", ".", "=", "\0", "é", "-1", "1e9", "٣", good["webhook-signature"][3:]]
    believed = 0
    for name in good:
        for value in mutated_texts([good[name]], words, count // 3):
            headers = {**good, name: value}
            try:
                verify(headers, BODY, SECRET, now=NOW)
            except SignatureRefused:
                continue
            believed += 1
            assert is_signed(headers), headers
    assert believed
