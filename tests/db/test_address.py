"""A database URL either names a database or is refused with an error that shows how to write one."""

import contextlib

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tidings.db.address import Address, read_address
from tidings.errors import DatabaseUrlInvalid

REFUSED = {
    "nothing": "",
    "blanks": "  \n ",
    "no URL at all": "tidings",
    "a web page": "http://user:secret@host/db",
    "a file": "sqlite:///tidings.db",
    "a driver's own spelling": "postgresql+asyncpg://user:secret@host/db",
    "no user": "postgresql://host/db",
    "an empty user": "postgresql://:secret@host/db",
    "no host": "postgresql://user:secret@/db",
    "nobody and nowhere": "mysql:///db",
    "no slashes": "postgresql:user@host/db",
    "no database, on PostgreSQL": "postgresql://user:secret@host",
    "only a slash, on PostgreSQL": "postgresql://user:secret@host/",
    "a port of words": "postgresql://user:secret@host:port/db",
    "a port that is too large": "mysql://user:secret@host:65536/db",
    "a negative port": "mysql://user:secret@host:-1/db",
    "port zero": "mysql://user:secret@host:0/db",
    "an empty host among several": "postgresql://user:secret@one:5432,,two:5432/db",
    "a port of words among several": "postgresql://user:secret@one:5432,two:port/db",
    "a server that only reads": "postgresql://user:secret@one,two/db?target_session_attrs=standby",
    "half an IPv6 address": "postgresql://user:secret@[::1/db",
    "a slash in the password": "postgresql://user:sec/secret@host/db",
    "a hash in the password": "postgresql://user:secret#1@host/db",
    "a sign that is two in another spelling": "postgresql://user:secret@ho℀st/db",
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_wrong_url_is_refused_with_the_right_form_and_without_its_password(case: str) -> None:
    with pytest.raises(DatabaseUrlInvalid) as refusal:
        read_address(REFUSED[case])
    assert "postgresql://user:password@host" in refusal.value.remedy
    assert "sec" not in str(refusal.value)
    assert refusal.value.__suppress_context__ or refusal.value.__context__ is None


def test_every_part_is_read_and_unescaped() -> None:
    address = read_address("postgres://j%C3%BCrg:p%2F%23%40%3A%25@db.example:6543/shop%20one?sslmode=require&x=%20")
    assert (address.family, address.host, address.port) == ("postgresql", "db.example", 6543)
    assert (address.user, address.password, address.database) == ("jürg", "p/#@:%", "shop one")
    assert address.options == {"sslmode": "require", "x": " "}
    assert address.url.startswith("postgresql://")


@pytest.mark.parametrize(
    ("url", "family", "port"),
    [
        ("postgresql://u@h/d", "postgresql", 5432),
        ("POSTGRES://u@h/d", "postgresql", 5432),
        ("mysql://u@h", "mysql", 3306),
        ("mariadb://u@h:/d", "mysql", 3306),
        (" postgresql://u:p@[::1]:1234/d\n", "postgresql", 1234),
    ],
)
def test_schemes_and_ports_have_the_usual_meanings(url: str, family: str, port: int) -> None:
    address = read_address(url)
    assert (address.family, address.port) == (family, port)


@pytest.mark.parametrize(
    ("url", "places"),
    [
        ("postgresql://u:p@one:5433,two/d", ["one:5433", "two:5432"]),
        ("postgresql://u:p@one,two/d?target_session_attrs=read-write", ["one:5432", "two:5432"]),
        ("mysql://u:p@one,two:3307,[::1]:3308/d", ["one:3306", "two:3307", "[::1]:3308"]),
    ],
)
def test_a_primary_and_its_standbys_stand_in_one_url(url: str, places: list[str]) -> None:
    address = read_address(url)
    each = address.each()
    assert [str(place) for place in address.places] == places
    assert [read_address(one.url).places for one in each] == [(place,) for place in address.places]
    assert all(one.must_take_writes and one.user == "u" and one.password == "p" for one in each)
    assert read_address(address.url_for("login", "p@ss", "d")).places == address.places
    assert ",".join(places) in str(address)


@pytest.mark.parametrize(
    ("url", "options"),
    [
        ("mysql://u@h/d?ssl-mode=VERIFY_CA&ssl-ca=/our%20ca.pem", {"ssl-mode": "VERIFY_CA", "ssl-ca": "/our ca.pem"}),
        ("postgresql://u@h/d?sslmode=verify-full&password=secret&sslkey=/u.pem", {"sslmode": "verify-full"}),
        ("postgresql://u@h/d", {}),
    ],
)
def test_another_login_asks_for_the_same_tls_and_for_nothing_of_this_one(url: str, options: dict[str, str]) -> None:
    other = read_address(read_address(url).url_for("login", "p@ss", "d"))
    assert (other.user, other.password, other.options) == ("login", "p@ss", options)


def test_of_a_single_host_nothing_is_asked_but_that_it_is_there() -> None:
    (one,) = read_address("mysql://u@h/d").each()
    assert not one.must_take_writes


def test_an_address_that_is_shown_never_shows_the_password() -> None:
    address = read_address("mysql://user:secret@host/db")
    assert "secret" not in f"{address} {address!r}"
    assert str(address) == "mysql://user@host:3306/db"


URLS = st.text() | st.builds(
    "{}://{}:{}@{}:{}/{}?{}".format, st.sampled_from(["mysql", "postgresql"]), *[st.text()] * 6
)


@given(URLS)
@example("postgresql://u@h:٣/d")
@example("mysql://[")
def test_any_text_is_an_address_or_is_refused(text: str) -> None:
    with contextlib.suppress(DatabaseUrlInvalid):
        assert isinstance(read_address(text), Address)
