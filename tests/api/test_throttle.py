"""Whoever tries keys is slowed down, and nobody else is."""

from ipaddress import ip_network

import pytest

from tests.api.conftest import Served, problem, serving
from tests.support.database import Database
from tidings.api.origins import origin
from tidings.api.throttle import _MOST_NAMES, MOST_FAILURES, SECONDS, Throttle, name_of

ADMIN = "a-word-that-an-operator-chose"


async def test_twenty_wrong_keys_a_minute_and_no_more_are_looked_at(engine: Database) -> None:
    """OWASP API 2: 20 failures a minute for each address."""
    async with serving(engine, TIDINGS_ADMIN_KEY=ADMIN) as served:
        guesser = served.client("a-guess")
        for _ in range(MOST_FAILURES):
            problem(await guesser.get("/v1/stats"), 401, "unauthenticated")
        answer = await guesser.get("/v1/stats")
        problem(answer, 429, "limit_reached")
        assert 0 < int(answer.headers["retry-after"]) <= SECONDS
        # Who has guessed right by now does not learn it; a key that can't be guessed is as good as before.
        problem(await served.client(ADMIN).get("/v1/stats"), 429, "limit_reached")
        assert (await served.as_("viewer").get("/v1/stats")).status_code == 200
        rows = await engine.sql("SELECT actor, subject, address FROM audit_log WHERE action = 'address.throttled'")
        assert [tuple(row.values()) for row in rows] == [("address:127.0.0.1", "keys", "127.0.0.1")]


async def test_a_request_without_a_key_is_no_guess(served: Served) -> None:
    nobody = served.client()
    for _ in range(MOST_FAILURES + 1):
        problem(await nobody.get("/v1/stats"), 401, "unauthenticated")


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_failures_are_forgotten_one_by_one_after_their_time() -> None:
    clock = Clock()
    throttle = Throttle(3, 60, clock)
    for moment in (1000.0, 1010.0, 1020.0):
        assert not throttle.holds("a")
        clock.now = moment
        throttle.failed("a")
    assert throttle.seconds_left("a") == 40
    assert not throttle.holds("b")
    clock.now = 1060.0
    assert not throttle.holds("a")
    throttle.failed("a")
    assert throttle.seconds_left("a") == 10


def test_it_remembers_no_more_than_it_has_room_for() -> None:
    clock = Clock()
    throttle = Throttle(2, 60, clock)
    for number in range(_MOST_NAMES + 5):
        throttle.failed(str(number))
    assert len(throttle._failures) == _MOST_NAMES
    clock.now += 61
    throttle.failed("new")
    assert len(throttle._failures) == 1


@pytest.mark.parametrize(
    ("one", "other", "are_one"),
    [
        ("2001:db8:1:2::1", "2001:db8:1:2:ffff::9", True),
        ("2001:db8:1:2::1", "2001:db8:1:3::1", False),
        ("192.0.2.1", "192.0.2.2", False),
        ("::ffff:192.0.2.1", "::ffff:192.0.2.2", False),
        ("", "somewhere", False),
    ],
)
def test_a_house_has_one_name_whichever_of_its_addresses_it_takes(one: str, other: str, are_one: bool) -> None:
    assert (name_of(one) == name_of(other)) == are_one


@pytest.mark.parametrize(
    ("peer", "told", "wanted"),
    [
        ("192.0.2.9", "203.0.113.7", "192.0.2.9"),  # nobody whom we trust
        ("10.0.0.1", "203.0.113.7", "203.0.113.7"),
        ("10.0.0.1", "198.51.100.1, 203.0.113.7, 10.0.0.2", "203.0.113.7"),  # the first one anybody can write
        ("10.0.0.1", "", "10.0.0.1"),
        ("10.0.0.1", "unknown", "10.0.0.1"),
        ("10.0.0.1", "10.0.0.3", "10.0.0.3"),
        ("fd00::1", "2001:db8::7", "2001:db8::7"),
    ],
)
def test_a_trusted_proxy_tells_from_where_a_request_came(peer: str, told: str, wanted: str) -> None:
    proxies = [ip_network("10.0.0.0/8"), ip_network("fd00::/8")]
    assert origin(peer, [(b"x-forwarded-for", told.encode())], proxies) == wanted
    assert origin(peer, [(b"x-forwarded-for", told.encode())], []) == peer


@pytest.mark.parametrize(
    ("lines", "wanted"),
    [
        (["203.0.113.7", "10.0.0.2"], "203.0.113.7"),
        (["198.51.100.1, 203.0.113.7", "10.0.0.3", "10.0.0.2"], "203.0.113.7"),
        (["10.0.0.2", "203.0.113.7"], "203.0.113.7"),
    ],
)
def test_several_lines_of_the_header_are_one_list(lines: list[str], wanted: str) -> None:
    """RFC 9110 §5.3: a proxy may add a line instead of lengthening the one it got."""
    headers = [(b"accept", b"192.0.2.1"), *((b"x-forwarded-for", line.encode()) for line in lines)]
    assert origin("10.0.0.1", headers, [ip_network("10.0.0.0/8")]) == wanted


async def test_who_is_behind_a_trusted_proxy_is_counted_apart(engine: Database) -> None:
    async with serving(engine, TIDINGS_TRUSTED_PROXIES="127.0.0.0/8") as served:
        guesser = served.client("a-guess")
        for _ in range(MOST_FAILURES):
            await guesser.get("/v1/stats", headers={"x-forwarded-for": "203.0.113.7"})
        problem(await guesser.get("/v1/stats", headers={"x-forwarded-for": "203.0.113.7"}), 429, "limit_reached")
        problem(await guesser.get("/v1/stats", headers={"x-forwarded-for": "203.0.113.8"}), 401, "unauthenticated")
        lines = [("x-forwarded-for", "203.0.113.7"), ("x-forwarded-for", "127.0.0.2")]
        problem(await guesser.get("/v1/stats", headers=lines), 429, "limit_reached")
        await served.as_("admin").put(
            "/v1/gates/routing", json={"is_open": True}, headers={"x-forwarded-for": "203.0.113.9"}
        )
        assert await engine.value("SELECT address FROM audit_log WHERE action LIKE 'gate%'") == "203.0.113.9"
