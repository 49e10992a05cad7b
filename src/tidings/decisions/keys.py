"""How an API key is written, read, told apart and hashed. Chance is an argument; nothing here knows a valid key.

`tid_<12 base62: public id>_<43 base62: 256 bits of chance><6 base62: CRC-32 of what stands before>`. The public id may
be shown and logged. The checksum tells a mistyped or cut key from a wrong one without asking a database.
"""

import hashlib
import hmac
import re
import zlib
from collections.abc import Iterable
from typing import Any

from tidings.decisions.texts import LONGEST_NAME, printable_text, refuse, visible_name
from tidings.errors import InputRefused
from tidings.model.key import NewKey, Scope
from tidings.model.sentence import Sentence, sentence

PUBLIC_IDS = 62**12
"""How many public ids there are; one is chosen by a number below this."""
SECRET_BYTES = 32
LONGEST_KEY = 512
_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_PREFIX = "tid_"
_OWN = "own-"
_FORM = re.compile(r"(tid_([0-9A-Za-z]{12})_[0-9A-Za-z]{43})([0-9A-Za-z]{6})")
_LONGEST_LIFETIME = 100 * 365 * 86_400.0
_DOMAIN_SCOPES = {Scope.PUBLISHER, Scope.VIEWER}
WRONG_KEYS = {
    "empty": "The key is empty.",
    "too_long": "This is no key: it is too long.",
    "no_form": "This key has not the form of one.",
    "cut": "This key is cut or too long.",
    "mistyped": "This key is mistyped: its checksum is wrong.",
    "unknown": "This key is not known here, or not valid any more.",
}


def key_text(number: int, secret: bytes) -> str:
    """The key of a number below PUBLIC_IDS and of SECRET_BYTES bytes of chance."""
    body = f"{_PREFIX}{_base62(number, 12)}_{_base62(int.from_bytes(secret), 43)}"
    return body + _checksum(body)


def public_id_of(key: str) -> str:
    """Under which id a key is looked up. A text that is no key of ours may be one that an operator chose."""
    found = _FORM.fullmatch(key)
    if found and _checksum(found[1]) == found[3]:
        return found[2]
    # A dash is no digit of base62: it is never the id of a key of ours.
    return f"{_OWN}{hashlib.sha256(b'tidings key id:' + key.encode()).hexdigest()[:24]}"


def may_be_guessed(key: str) -> bool:
    """One that an operator chose may be; those of ours have 256 bits of chance."""
    return public_id_of(key).startswith(_OWN)


def what_is_wrong(key: str) -> Sentence:
    """Of a key that nobody knows: what can be seen of it without knowing any."""
    return sentence(WRONG_KEYS, _what_is_wrong(key), {})


def _what_is_wrong(key: str) -> str:
    if not key:
        return "empty"
    if len(key) > LONGEST_KEY:
        return "too_long"
    found = _FORM.fullmatch(key)
    if found is None:
        return "cut" if key.startswith(_PREFIX) else "no_form"
    return "unknown" if _checksum(found[1]) == found[3] else "mistyped"


def hash_of(installation_id: str, key: str) -> bytes:
    """What is stored of a key. A slow hash would buy nothing: 256 bits of chance can't be guessed."""
    return hmac.digest(installation_id.encode(), key.encode(), "sha256")


def is_hash_of(stored: bytes | None, installation_id: str, key: str) -> bool:
    """Takes as long whether there is a stored hash or not."""
    wanted = hash_of(installation_id, key)
    same = hmac.compare_digest(wanted, stored if stored is not None else bytes(len(wanted)))
    return same and stored is not None


def check_new_key(name: Any, scopes: Iterable[str], event_domain: Any = None, lifetime: float | None = None) -> NewKey:
    """What may be stored, or InputRefused."""
    chosen = frozenset(_scope(scope) for scope in scopes)
    if not chosen:
        refuse("scopes", "are missing", f"Give some of {', '.join(Scope)}.")
    if lifetime is not None and not 0 < lifetime <= _LONGEST_LIFETIME:
        refuse("lifetime", f"is {lifetime} seconds", "Give a time to come, or none.")
    if event_domain is not None:
        visible_name(event_domain, "event_domain", LONGEST_NAME)
        if "*" in event_domain:
            refuse("event_domain", f"is {event_domain!r}", "A key is bound to one domain by its name, or to none.")
        if wide := sorted(chosen - _DOMAIN_SCOPES):
            refuse(
                "event_domain",
                f"can't be said of a key with the scope {wide[0]}",
                "What an operator and an admin may do concerns all domains; bind publishers and viewers.",
            )
    return NewKey(printable_text(name, "name", 200), chosen, event_domain, lifetime)


def _scope(text: str) -> Scope:
    try:
        return Scope(text)
    except ValueError:
        raise InputRefused(
            f"There is no scope {text!r}.", f"The scopes are {', '.join(Scope)}.", field="scopes"
        ) from None


def scopes_text(scopes: Iterable[Scope]) -> str:
    """As they are stored: in one order, with a space between."""
    given = set(scopes)
    return " ".join(scope for scope in Scope if scope in given)


def read_scopes(text: str) -> frozenset[Scope]:
    """From what is stored. A word that a newer version wrote allows nothing here."""
    return frozenset(Scope(word) for word in text.split() if word in Scope.__members__.values())


def _checksum(text: str) -> str:
    return _base62(zlib.crc32(text.encode()), 6)


def _base62(number: int, width: int) -> str:
    digits = ""
    while number:
        number, digit = divmod(number, 62)
        digits = _DIGITS[digit] + digits
    return digits.rjust(width, "0")
