"""How API keys are written and read: nothing here needs a database."""

import random
import string
from typing import Any

import pytest

from tidings.decisions.keys import (
    LONGEST_KEY,
    PUBLIC_IDS,
    SECRET_BYTES,
    check_new_key,
    hash_of,
    is_hash_of,
    key_text,
    public_id_of,
    read_scopes,
    scopes_text,
    what_is_wrong,
)
from tidings.errors import InputRefused
from tidings.model.key import Caller, Scope

KEY = key_text(123456789, bytes(range(SECRET_BYTES)))


def test_a_key_has_the_form_that_scanners_look_for() -> None:
    prefix, public_id, secret = KEY.split("_")
    assert (prefix, len(public_id), len(secret)) == ("tid", 12, 43 + 6)
    assert set(public_id + secret) <= set(string.ascii_letters + string.digits)
    assert public_id_of(KEY) == public_id


def test_the_largest_chance_there_is_fits() -> None:
    largest = key_text(PUBLIC_IDS - 1, b"\xff" * SECRET_BYTES)
    assert len(largest) == len(KEY) == len(key_text(0, bytes(SECRET_BYTES)))
    assert what_is_wrong(largest).startswith("This key is not known")


def test_different_chance_makes_different_keys() -> None:
    chance = random.Random(1)
    keys = {key_text(chance.randrange(PUBLIC_IDS), chance.randbytes(SECRET_BYTES)) for _ in range(500)}
    assert len({public_id_of(key) for key in keys}) == 500


@pytest.mark.parametrize("place", [4, 10, 17, 40, 59, 65])
def test_a_mistyped_sign_is_told_by_the_checksum(place: int) -> None:
    typed = KEY[:place] + ("A" if KEY[place] != "A" else "B") + KEY[place + 1 :]
    assert "checksum" in what_is_wrong(typed)
    assert public_id_of(typed).startswith("own-")


@pytest.mark.parametrize(
    ("text", "word"), [(KEY[:-1], "cut"), ("", "empty"), ("x" * (LONGEST_KEY + 1), "too long"), ("abc", "form")]
)
def test_what_is_no_key_is_refused_in_words(text: str, word: str) -> None:
    assert word in what_is_wrong(text)


def test_an_operators_own_key_has_an_id_that_no_key_of_ours_can_have() -> None:
    own = public_id_of("let me in")
    assert own == public_id_of("let me in") != public_id_of("let me in ")
    assert "-" in own
    assert len(own) <= 40
    assert "let" not in own


def test_a_hash_belongs_to_the_whole_key_and_to_one_installation() -> None:
    stored = hash_of("here", KEY)
    assert len(stored) == 32
    assert is_hash_of(stored, "here", KEY)
    assert not is_hash_of(stored, "there", KEY)
    assert not is_hash_of(stored, "here", KEY[:-1])
    assert not is_hash_of(None, "here", KEY)
    assert not is_hash_of(bytes(32), "here", KEY)


@pytest.mark.parametrize(
    ("scopes", "may"),
    [
        ({Scope.PUBLISHER}, {Scope.PUBLISHER}),
        ({Scope.VIEWER}, {Scope.VIEWER}),
        ({Scope.OPERATOR}, {Scope.VIEWER, Scope.OPERATOR}),
        ({Scope.ADMIN}, set(Scope)),
        ({Scope.PUBLISHER, Scope.VIEWER}, {Scope.PUBLISHER, Scope.VIEWER}),
        (set(), set()),
    ],
)
def test_scopes_cover_each_other_as_they_should(scopes: set[Scope], may: set[Scope]) -> None:
    caller = Caller("a", frozenset(scopes))
    assert {scope for scope in Scope if caller.may(scope)} == may


def test_scopes_are_stored_in_one_order_and_unknown_words_allow_nothing() -> None:
    assert scopes_text([Scope.ADMIN, Scope.PUBLISHER]) == "publisher admin"
    assert read_scopes("publisher admin") == {Scope.PUBLISHER, Scope.ADMIN}
    assert read_scopes("owner ADMIN") == frozenset()


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"scopes": []}, "scopes"),
        ({"scopes": ["root"]}, "scopes"),
        ({"name": ""}, "name"),
        ({"name": "a\nb"}, "name"),
        ({"event_domain": "a b"}, "event_domain"),
        ({"event_domain": "*"}, "event_domain"),
        ({"event_domain": "shop", "scopes": ["operator"]}, "event_domain"),
        ({"lifetime": 0}, "lifetime"),
        ({"lifetime": -1}, "lifetime"),
    ],
)
def test_what_can_be_no_key_is_refused_with_its_field(given: dict[str, Any], field: str) -> None:
    with pytest.raises(InputRefused) as refused:
        check_new_key(**{"name": "x", "scopes": ["viewer"], **given})
    assert refused.value.field == field
