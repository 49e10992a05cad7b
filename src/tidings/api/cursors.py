"""Opaque cursors that can't be made up, altered, or carried from one list to another."""

import base64
import binascii
import hmac
import json
from typing import Any

from tidings.api.problems import Refused

_MAC_BYTES = 12
LONGEST_CURSOR = 500


class Cursors:
    """`secret` is the same for all servers of an installation, so that any of them can go on."""

    def __init__(self, secret: str) -> None:
        self._secret = f"tidings cursor:{secret}".encode()

    def written(self, list_name: str, place: list[Any]) -> str:
        body = json.dumps(place, separators=(",", ":")).encode()
        return base64.urlsafe_b64encode(self._mac(list_name, body) + body).rstrip(b"=").decode()

    def read(self, list_name: str, cursor: str) -> list[Any]:
        """The place it stands for. `list_name` has the filters in it: a page of other ones would be no next page."""
        try:
            raw = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        except (binascii.Error, ValueError):
            raise _bad() from None
        mac, body = raw[:_MAC_BYTES], raw[_MAC_BYTES:]
        if len(cursor) > LONGEST_CURSOR or not hmac.compare_digest(mac, self._mac(list_name, body)):
            raise _bad()
        place: list[Any] = json.loads(body)
        return place

    def _mac(self, list_name: str, body: bytes) -> bytes:
        return hmac.digest(self._secret, list_name.encode() + b"\0" + body, "sha256")[:_MAC_BYTES]


def _bad() -> Refused:
    return Refused(
        "bad_cursor",
        "This cursor is not one that this list gave, with these filters. Begin without one.",
        [("?cursor", "is not a `next_cursor` of this list with these filters")],
    )
