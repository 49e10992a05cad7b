"""What a subscription may be: every field's bounds, all problems at once, and what an edit comes to."""

import base64
from contextlib import suppress
from dataclasses import replace
from ipaddress import ip_network
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.decisions.destinations import DestinationRules
from tidings.decisions.secret_keys import secret_text
from tidings.decisions.subscribing import (
    SubscriptionRules,
    changed_columns,
    check_changes,
    check_new,
    check_overlap,
    check_secret,
)
from tidings.errors import SubscriptionRefused
from tidings.model.subscription import Subscription, Verification

RULES = SubscriptionRules(
    DestinationRules(http_hosts=("127.0.0.1",), networks=(ip_network("127.0.0.0/8"),)),
    longest_timeout=50,
    longest_delay=3600,
    most_in_flight=64,
)
LEAST = {"event_type": "order.paid", "callback_url": "https://example.com/hook"}
STORED = Subscription(
    id=7,
    event_domain="default",
    event_type="order.paid",
    callback_url="https://example.com/hook",
    pending_callback_url=None,
    active=True,
    verified=True,
    verification=Verification.PROOF,
    paused=False,
    description="",
    max_retry_limit=3,
    base_delay_seconds=None,
    timeout_seconds=None,
    max_in_flight=None,
    config_version=4,
)
SECRET = secret_text(b"s" * 32)

ACCEPTED: list[tuple[str, Any]] = [
    *[("event_type", value) for value in ("a", "order.*", "*", "a" * 100, "~!")],
    *[("event_domain", value) for value in ("shop", "*", "d" * 100)],
    *[("description", value) for value in ("", "für die Buchhaltung 📦", "d" * 500)],
    *[("verification", value) for value in ("proof", "echo")],
    *[("max_retry_limit", value) for value in (None, 1, 1000)],
    *[("base_delay_seconds", value) for value in (None, 0.001, 5, 3600)],
    *[("timeout_seconds", value) for value in (None, 0.1, 15, 50.0)],
    *[("max_in_flight", value) for value in (None, 1, 64)],
    *[("headers", value) for value in (None, {}, {"X-Key": "a b"}, {f"x-{n}": "v" for n in range(20)})],
    ("headers", {"authorization": "Bearer " + "a" * 8000}),
]
REFUSED: list[tuple[str, Any]] = [
    *[("event_type", value) for value in ("", "a" * 101, "a b", "ä", "a\n", "or*der", "*.paid", "a.**", ".*", None, 7)],
    *[("event_domain", value) for value in ("", "d" * 101, "a b", "a.*", "**", None, ["a"])],
    *[("description", value) for value in ("d" * 501, "a\nb", "a\x00", "\ud800", None, 7)],
    *[("verification", value) for value in ("", "None", "never", None, 0, list[str]())],
    *[("max_retry_limit", value) for value in (0, -1, 1001, 1.5, "3", True)],
    *[("base_delay_seconds", value) for value in (0, -1, 0.0009, 3601, float("nan"), float("inf"), "5", True)],
    *[("timeout_seconds", value) for value in (0, 0.09, 50.1, float("nan"), float("inf"), 10**400, "5", True)],
    *[("max_in_flight", value) for value in (0, 65, 1.0, "1", True)],
    *[
        ("headers", value)
        for value in ("X: y", [("x", "y")], {"": "v"}, {"a b": "v"}, {"a:": "v"}, {"ä": "v"}, {7: "v"})
    ],
    *[("headers", {"x": value}) for value in ("", " v", "v ", "a\r\nb", "a\nb", "a\tb", "a\x00", "ä", None, 7, ["v"])],
    *[("headers", {name: "v"}) for name in ("Host", "content-length", "Content-Type", "CONNECTION", "Upgrade")],
    *[("headers", {name: "v"}) for name in ("transfer-encoding", "Keep-Alive", "trailer", "expect", "cookie")],
    *[
        ("headers", {name: "v"})
        for name in ("webhook-id", "Webhook-Signature", "tidings-attempt", "Proxy-Authorization")
    ],
    ("headers", {"te": "v"}),  # codespell:ignore te
    ("headers", {"X-Key": "a", "x-key": "b"}),
    ("headers", {f"x-{n}": "v" for n in range(21)}),
    ("headers", {"x-long": "a" * 8192}),
    *[("callback_url", value) for value in ("http://example.com/", "https://localhost/", None, 7)],
    *[(name, 1) for name in ("id", "verified", "config_version", "secrets", "created_at", "pending_callback_url", "x")],
]


@pytest.mark.parametrize(("name", "value"), ACCEPTED, ids=lambda value: str(value)[:40])
def test_a_value_within_bounds_is_taken_for_new_and_for_edited_ones(name: str, value: Any) -> None:
    check_new({**LEAST, name: value}, RULES)
    assert name in check_changes({name: value}, RULES)


@pytest.mark.parametrize(("name", "value"), REFUSED, ids=lambda value: ascii(value)[:40])
def test_a_value_out_of_bounds_is_refused_for_new_and_for_edited_ones(name: str, value: Any) -> None:
    for refused in (lambda: check_new({**LEAST, name: value}, RULES), lambda: check_changes({name: value}, RULES)):
        with pytest.raises(SubscriptionRefused) as said:
            refused()
        assert said.value.field == name


def test_a_new_one_needs_a_type_and_a_url_and_nothing_else() -> None:
    new = check_new(LEAST, RULES)
    assert (new.event_domain, new.description, new.verification) == ("default", "", Verification.PROOF)
    assert (new.secret, dict(new.headers), new.limits.max_retry_limit) == (None, {}, None)
    for name in LEAST:
        with pytest.raises(SubscriptionRefused, match=f"{name} is missing"):
            check_new({key: value for key, value in LEAST.items() if key != name}, RULES)


def test_all_problems_are_told_at_once() -> None:
    with pytest.raises(SubscriptionRefused) as said:
        check_new({"event_type": "a b", "callback_url": "ftp://x", "max_in_flight": 0, "colour": "red"}, RULES)
    assert said.value.field == "event_type, callback_url, max_in_flight, colour"
    assert [part.field for part in said.value.parts] == said.value.field.split(", ")
    assert all(word in said.value.what for word in ("visible ASCII", "https://", "from 1 to 64", "'colour'"))


def test_no_refusal_quotes_what_is_secret() -> None:
    for bad in ({"secret": "whsec_hunter2"}, {"headers": {"x": "hunter2\n"}}, {"headers": {"a b": "hunter2"}}):
        with pytest.raises(SubscriptionRefused) as said:
            check_new({**LEAST, **bad}, RULES)
        assert "hunter2" not in str(said.value)


def test_header_names_are_kept_in_small_letters() -> None:
    assert check_changes({"headers": {"X-Api-Key": "Value"}}, RULES) == {"headers": {"x-api-key": "Value"}}


def test_an_edit_can_not_bring_a_secret_and_a_new_one_can_not_be_paused() -> None:
    with pytest.raises(SubscriptionRefused, match="'secret'"):
        check_changes({"secret": SECRET}, RULES)
    for name in ("active", "paused"):
        with pytest.raises(SubscriptionRefused, match=name):
            check_new({**LEAST, name: True}, RULES)


# Secrets


@pytest.mark.parametrize("length", [24, 32, 64])
def test_a_secret_of_24_to_64_bytes_is_taken(length: int) -> None:
    given = secret_text(b"k" * length)
    assert check_secret(given) == given
    assert check_secret(given.rstrip("=")) == given


@pytest.mark.parametrize(
    "secret",
    [
        *[secret_text(b"k" * length) for length in (0, 1, 23, 65)],
        base64.b64encode(b"k" * 32).decode(),
        "whsec_" + "k" * 31 + "!",
        "whsec_" + "k" * 32 + " ",
        "whsk_" + base64.b64encode(b"k" * 32).decode(),
        "whsec_ä",
        "",
        None,
        7,
    ],
)
def test_any_other_secret_is_refused(secret: Any) -> None:
    with pytest.raises(SubscriptionRefused) as said:
        check_secret(secret)
    assert said.value.field == "secret"


@pytest.mark.parametrize("overlap", [-1, float("nan"), float("inf"), True, "1d", None, 10**9])
def test_an_overlap_is_a_number_of_seconds_of_at_most_a_year(overlap: Any) -> None:
    with pytest.raises(SubscriptionRefused):
        check_overlap(overlap)


def test_an_overlap_is_never_shorter_than_asked_for() -> None:
    assert [check_overlap(seconds) for seconds in (0, 0.2, 86_400)] == [0, 1, 86_400]


# Edits


def test_only_what_differs_is_changed() -> None:
    wanted = check_changes({"event_type": "order.paid", "description": "new", "max_retry_limit": None}, RULES)
    assert changed_columns(STORED, wanted, RULES) == {"description": "new", "max_retry_limit": None}


def test_a_new_url_waits_and_the_one_in_force_is_not_touched() -> None:
    assert changed_columns(STORED, {"callback_url": "https://example.com/b"}, RULES) == {
        "pending_callback_url": "https://example.com/b"
    }


def test_the_url_in_force_given_again_ends_the_waiting() -> None:
    waiting = replace(STORED, pending_callback_url="https://example.com/b")
    assert changed_columns(waiting, {"callback_url": STORED.callback_url}, RULES) == {"pending_callback_url": None}
    assert changed_columns(STORED, {"callback_url": STORED.callback_url}, RULES) == {}


TRUSTED = replace(STORED, callback_url="http://127.0.0.1:9000/", verification=Verification.NONE)


def test_without_verification_a_host_must_be_on_the_allow_lists() -> None:
    check_new({**LEAST, "verification": "none", "callback_url": "http://127.0.0.1:9000/"}, RULES)
    with pytest.raises(SubscriptionRefused, match="allow list"):
        check_new({**LEAST, "verification": "none"}, RULES)
    with pytest.raises(SubscriptionRefused, match="allow list"):
        changed_columns(TRUSTED, {"callback_url": "https://example.com/"}, RULES)
    with pytest.raises(SubscriptionRefused, match="allow list"):
        changed_columns(replace(STORED, verified=False), {"verification": Verification.NONE}, RULES)


def test_a_waiting_url_is_judged_when_the_verification_goes() -> None:
    waiting = replace(TRUSTED, verified=False, verification=Verification.PROOF)
    elsewhere = replace(waiting, pending_callback_url="https://example.com/")
    assert changed_columns(waiting, {"verification": Verification.NONE}, RULES)
    with pytest.raises(SubscriptionRefused, match="allow list"):
        changed_columns(elsewhere, {"verification": Verification.NONE}, RULES)


def test_a_host_that_left_the_allow_lists_does_not_stand_in_the_way_of_other_edits() -> None:
    strict = SubscriptionRules()
    assert changed_columns(TRUSTED, {"description": "x"}, strict) == {"description": "x"}


@pytest.mark.parametrize(("current", "to"), [(TRUSTED, Verification.PROOF), (STORED, Verification.NONE)])
def test_what_is_trusted_can_not_come_to_stand_as_verified_nor_the_other_way(
    current: Subscription, to: Verification
) -> None:
    url = {"callback_url": "http://127.0.0.1:9000/"}
    with pytest.raises(SubscriptionRefused, match="can't become otherwise"):
        changed_columns(current, {"verification": to, **url}, RULES)
    assert changed_columns(STORED, {"verification": Verification.ECHO, "description": "none"}, RULES)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "active · verified"),
        ({"verified": False}, "active · unverified"),
        ({"active": False, "paused": True}, "inactive · paused · verified"),
        ({"verification": Verification.NONE}, "active · trusted, not verified"),
        ({"verification": Verification.NONE, "verified": False}, "active · unverified"),
        ({"pending_callback_url": "https://example.com/b"}, "active · verified · new URL pending"),
    ],
)
def test_the_state_is_told_in_words(changes: dict[str, Any], words: str) -> None:
    """An endpoint that nobody called is *trusted*, and never shown as *verified*."""
    assert replace(STORED, **changes).state == words


ANYTHING = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(), inner, max_size=3)),
    max_leaves=5,
)
NAMES = st.sampled_from(
    [*LEAST, "event_domain", "description", "headers", "secret", "timeout_seconds", "max_in_flight"]
)


@given(st.dictionaries(st.one_of(NAMES, st.text(max_size=10)), ANYTHING, max_size=6))
def test_whatever_is_given_the_answer_is_a_subscription_or_a_refusal(given: dict[str, Any]) -> None:
    for check in (check_new, check_changes):
        with suppress(SubscriptionRefused):
            check(given, RULES)
