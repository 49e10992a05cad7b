"""Asks whichever process of the API there is, as an operator would, and says what is known of the answer."""

import http.client
import json
from typing import Any

TOO_OFTEN = 429


def post(port: int, path: str, key: str) -> tuple[str, dict[str, Any]]:
    """`done` with what was said, `refused`, `unreached`, or `in doubt`: it may have been done or not."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        connection.connect()
    except OSError:
        connection.close()
        return "unreached", {}
    try:
        connection.request("POST", path, headers={"authorization": f"Bearer {key}"})
        answer = connection.getresponse()
        said = answer.read()
        if answer.status == 202:
            return "done", json.loads(said)
        return ("refused" if answer.status == TOO_OFTEN else "in doubt"), {}
    except (OSError, http.client.HTTPException):
        return "in doubt", {}
    finally:
        connection.close()
