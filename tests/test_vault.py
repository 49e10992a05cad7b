"""Sealing: only the right ring opens it, only in its place; and which secrets of a column are valid when."""

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.db.embedded import EmbeddedServer
from tidings.db.embedded.secret_key import secret_key
from tidings.errors import EmbeddedServerFailed, SecretsUnusable
from tidings.settings import load_settings
from tidings.vault import (
    Vault,
    entries,
    open_headers,
    seal_headers,
    seal_secret,
    valid_secrets,
)
from tidings.vault.ring import place_of
from tidings.wiring import Installation

SECOND = 1_000_000
DAY = 86_400
HERE = place_of("subscriptions", 7, "secret")

old, new = Vault(["the old key"]), Vault(["the new key", "the old key"])


def column(*added: tuple[str, int, int], subscription: int = 7, vault: Vault = new) -> bytes:
    """As the database makes it: (secret, created at, overlap), each put before the older ones."""
    whole = b""
    for secret, created_at, overlap in added:
        whole = seal_secret(vault, subscription, secret, created_at=created_at * SECOND, overlap=overlap) + whole
    return whole


def valid(whole: bytes, now: float, subscription: int = 7, vault: Vault = new) -> list[str]:
    return valid_secrets(vault, subscription, whole, now)


# The ring


@given(st.binary(max_size=300))
def test_what_was_sealed_opens_again_and_is_not_to_be_seen(plain: bytes) -> None:
    sealed = new.seal(plain, HERE)
    assert new.open(sealed, HERE) == plain
    assert len(plain) < 4 or plain not in sealed


def test_the_same_text_is_never_sealed_to_the_same_bytes() -> None:
    assert len({new.seal(b"same", HERE) for _ in range(50)}) == 50


def test_the_newest_key_seals_and_all_open() -> None:
    assert new.open(old.seal(b"earlier", HERE), HERE) == b"earlier"
    with pytest.raises(SecretsUnusable, match="not in the key ring"):
        old.open(new.seal(b"later", HERE), HERE)


def test_a_key_that_is_missing_is_named_and_the_remedy_says_where_to_put_it() -> None:
    sealed = new.seal(b"x", HERE)
    with pytest.raises(SecretsUnusable) as refused:
        Vault(["another"]).open(sealed, HERE)
    assert sealed[1:9].hex() in refused.value.what
    assert "TIDINGS_SECRET_KEYS" in refused.value.remedy
    assert "the new key" not in str(refused.value)


def test_without_a_key_nothing_is_sealed_and_the_remedy_says_how_to_make_one() -> None:
    with pytest.raises(SecretsUnusable) as refused:
        Vault([]).seal(b"x", HERE)
    assert "TIDINGS_SECRET_KEYS" in refused.value.remedy
    assert "openssl rand" in refused.value.remedy


@pytest.mark.parametrize(
    "elsewhere",
    [
        place_of("subscriptions", 8, "secret"),
        place_of("subscriptions", 7, "headers"),
        place_of("api_keys", 7, "secret"),
        place_of("subscriptions", 7, "secret", b"\x01"),
    ],
)
def test_what_was_moved_does_not_open(elsewhere: bytes) -> None:
    with pytest.raises(SecretsUnusable, match="moved"):
        new.open(new.seal(b"x", HERE), elsewhere)


@given(st.data())
def test_not_one_bit_can_be_changed(data: st.DataObject) -> None:
    sealed = bytearray(new.seal(b"secret", HERE))
    bit = data.draw(st.integers(0, len(sealed) * 8 - 1))
    sealed[bit // 8] ^= 1 << bit % 8
    with pytest.raises(SecretsUnusable):
        new.open(bytes(sealed), HERE)


@given(st.binary(max_size=80))
def test_what_was_never_sealed_is_unusable_and_nothing_else(garbage: bytes) -> None:
    with pytest.raises(SecretsUnusable):
        new.open(garbage, HERE)


def test_places_with_other_parts_are_other_places() -> None:
    assert place_of("a", 1, "b", b"c") != place_of("a", 1, "bc")
    assert place_of("a", 11, "b") != place_of("a", 1, "1b")


# The column of secrets


def test_the_newest_secret_is_valid_for_ever() -> None:
    assert valid(column(("first", 100, 0)), 10**9) == ["first"]


def test_during_an_overlap_both_are_valid_the_newest_first() -> None:
    whole = column(("first", 100, 0), ("second", 200, DAY))
    assert valid(whole, 200) == ["second", "first"]
    assert valid(whole, 200 + DAY - 0.000001) == ["second", "first"]
    assert valid(whole, 200 + DAY) == ["second"]


def test_of_two_rotations_each_ends_what_came_before_it() -> None:
    whole = column(("first", 0, 0), ("second", 100, 1000), ("third", 200, 100))
    assert valid(whole, 250) == ["third", "second", "first"]
    assert valid(whole, 300) == ["third"]
    longer = column(("first", 0, 0), ("second", 100, 100), ("third", 150, 1000))
    assert valid(longer, 199) == ["third", "second", "first"]
    assert valid(longer, 200) == ["third", "second"]
    assert valid(longer, 1150) == ["third"]


def test_a_rotation_without_overlap_ends_the_older_ones_at_once_and_for_ever() -> None:
    whole = column(("stolen", 0, 0), ("second", 100, 0), ("third", 101, DAY))
    assert valid(whole, 101) == ["third", "second"]


def test_what_a_cut_has_left_of_the_oldest_is_no_secret() -> None:
    whole = column(("first", 0, 0), ("second", 1, DAY))
    oldest = len(whole) - len(column(("second", 1, DAY)))
    for cut in range(1, oldest + 1):
        assert valid(whole[:-cut], 2) == ["second"]


@given(st.binary(max_size=200))
def test_entries_can_be_read_from_any_bytes(garbage: bytes) -> None:
    assert sum(len(entry.header) + len(entry.sealed) for entry in entries(garbage)) <= len(garbage)


def test_an_empty_column_has_no_secret() -> None:
    assert valid(b"", 0) == []


def test_the_times_of_an_entry_can_not_be_changed() -> None:
    whole = column(("first", 100, 0))
    longer = whole[:2] + (10**15).to_bytes(8, "big") + whole[10:]
    with pytest.raises(SecretsUnusable, match="moved"):
        valid(longer, 200)


def test_a_secret_that_was_moved_to_another_subscription_does_not_open() -> None:
    with pytest.raises(SecretsUnusable, match="moved"):
        valid(column(("first", 0, 0), subscription=8), 1, subscription=7)


def test_a_rotated_ring_still_opens_older_secrets() -> None:
    whole = column(("second", 1, DAY)) + column(("first", 0, 0), vault=old)
    assert valid(whole, 2) == ["second", "first"]
    with pytest.raises(SecretsUnusable, match="key ring"):
        valid(whole, 2, vault=Vault(["the new key"]))


def test_a_key_is_not_asked_for_by_secrets_that_are_no_longer_valid() -> None:
    whole = column(("second", 1, 0)) + column(("first", 0, 0), vault=old)
    assert valid(whole, 2, vault=Vault(["the new key"])) == ["second"]


def test_headers_open_only_for_their_subscription() -> None:
    sealed = seal_headers(new, 7, {"x-key": "value"})
    assert open_headers(new, 7, sealed) == {"x-key": "value"}
    with pytest.raises(SecretsUnusable, match="moved"):
        open_headers(new, 8, sealed)


# Where the ring comes from


def ring_of(data_dir: Path, **environ: str) -> Vault:
    settings = load_settings(environ={"TIDINGS_DATA_DIR": str(data_dir), **environ})
    return Installation(settings, EmbeddedServer(data_dir)).vault()


def test_the_embedded_database_has_a_key_of_its_own_which_is_found_again(tmp_path: Path) -> None:
    sealed = ring_of(tmp_path).seal(b"x", HERE)
    assert ring_of(tmp_path).open(sealed, HERE) == b"x"
    assert (tmp_path / "secret.key").stat().st_mode & 0o777 == 0o600


def test_given_keys_seal_and_the_key_of_the_embedded_database_still_opens(tmp_path: Path) -> None:
    earlier = ring_of(tmp_path).seal(b"x", HERE)
    later = ring_of(tmp_path, TIDINGS_SECRET_KEYS="given")
    assert later.open(earlier, HERE) == b"x"
    assert Vault(["given"]).open(later.seal(b"y", HERE), HERE) == b"y"


def test_with_given_keys_none_is_generated(tmp_path: Path) -> None:
    ring_of(tmp_path, TIDINGS_SECRET_KEYS="given").seal(b"x", HERE)
    assert list(tmp_path.iterdir()) == []


def test_a_crash_while_the_key_is_written_leaves_no_key_and_the_next_start_makes_one(tmp_path: Path) -> None:
    (tmp_path / "secret.key.new").write_text("half a k")
    key = secret_key(tmp_path)
    assert secret_key(tmp_path) == key
    assert len(key) >= 32


@pytest.mark.parametrize("content", [b"", b"short\n", b"\xff\xfe" * 40])
def test_a_key_file_that_is_damaged_is_never_replaced(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "secret.key").write_bytes(content)
    with pytest.raises(EmbeddedServerFailed, match="backup"):
        secret_key(tmp_path)
    assert (tmp_path / "secret.key").read_bytes() == content


def test_of_processes_that_start_at_once_all_get_the_same_key(tmp_path: Path) -> None:
    program = "import sys, pathlib, tidings.db.embedded.secret_key as k; print(k.secret_key(pathlib.Path(sys.argv[1])))"
    command = [sys.executable, "-c", program, str(tmp_path)]
    started = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(6)]
    keys = [process.communicate(timeout=60)[0].strip() for process in started]
    assert set(keys) == {secret_key(tmp_path)}


def test_an_own_server_needs_keys(tmp_path: Path) -> None:
    settings = load_settings(environ={"TIDINGS_DATABASE_URL": "postgresql://x@127.0.0.1/x"}, directory=tmp_path)
    with pytest.raises(SecretsUnusable, match="TIDINGS_SECRET_KEYS"):
        Installation.look(settings).vault().seal(b"x", HERE)
