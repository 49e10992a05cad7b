"""AES-256-GCM under a ring of keys, newest first: the first one seals, all of them open.

A sealed text is `version ‖ key id ‖ nonce ‖ ciphertext and tag`, and is bound to its place: it opens nowhere else.
"""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from tidings.errors import SecretsUnusable

VERSION = b"\x01"
KEY_ID, NONCE, TAG = 8, 12, 16
HEAD = len(VERSION) + KEY_ID
OVERHEAD = HEAD + NONCE + TAG

MAKE_A_KEY = "`openssl rand -base64 32` makes a key"


@dataclass(frozen=True, repr=False)
class _Key:
    """`id` names the key in what it sealed, and tells nothing about it."""

    id: bytes
    cipher: AESGCM


class Vault:
    """The key ring. Without keys it can be made, but neither seals nor opens."""

    def __init__(self, keys: Sequence[str]) -> None:
        self._texts = tuple(keys)

    def seal(self, plain: bytes, place: bytes) -> bytes:
        key, nonce = self._newest(), secrets.token_bytes(NONCE)
        head = VERSION + key.id
        return head + nonce + key.cipher.encrypt(nonce, plain, head + place)

    def open(self, sealed: bytes, place: bytes) -> bytes:
        """What was sealed for this very place."""
        if len(sealed) < OVERHEAD or sealed[: len(VERSION)] != VERSION:
            raise SecretsUnusable("A sealed secret is damaged.", "Rotate the secret, or give the headers anew.")
        head, nonce = sealed[:HEAD], sealed[HEAD : HEAD + NONCE]
        try:
            return self._key(head[len(VERSION) :]).cipher.decrypt(nonce, sealed[HEAD + NONCE :], head + place)
        except InvalidTag:
            raise SecretsUnusable(
                "A sealed secret was damaged, or was moved here from another row.",
                "Find out who writes to the database, then rotate the secret or give the headers anew.",
            ) from None

    @cached_property
    def _keys(self) -> dict[bytes, _Key]:
        if not self._texts:
            raise SecretsUnusable(
                "There is no key to seal secrets with.",
                f"Set TIDINGS_SECRET_KEYS, to the same value for every process; {MAKE_A_KEY}.",
            )
        made = [_Key(_derived(text, b"id", KEY_ID), AESGCM(_derived(text, b"aes-256-gcm", 32))) for text in self._texts]
        return {key.id: key for key in made}

    def _newest(self) -> _Key:
        return next(iter(self._keys.values()))

    def _key(self, id: bytes) -> _Key:
        if id not in self._keys:
            raise SecretsUnusable(
                f"A secret was sealed with the key {id.hex()}, which is not in the key ring.",
                "Put that key back into TIDINGS_SECRET_KEYS, after the newer ones"
                " (embedded database: put the file secret.key back into the data directory).",
            )
        return self._keys[id]


def _derived(text: str, purpose: bytes, length: int) -> bytes:
    return HKDF(SHA256(), length, salt=None, info=b"tidings vault 1 " + purpose).derive(text.encode())


def place_of(table: str, row: int, kind: str, header: bytes = b"") -> bytes:
    """Where a sealed text belongs. The same in every installation, so that a restored copy opens."""
    return b"\x00".join((table.encode(), str(row).encode(), kind.encode(), header))
