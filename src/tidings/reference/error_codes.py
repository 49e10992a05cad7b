"""docs/reference/error-codes.md, from the closed list of the courier and the problems of the API."""

from tidings.api.problems import KINDS
from tidings.courier.error_codes import SITUATIONS
from tidings.reference.writing import code, head, table

_SAYS = """Why an attempt to deliver failed, as it stands in `error_code` of a job and in `final_error_code` of a
saga. The list is closed: nothing else is ever written there. A code says how far the attempt came. In the first
five cases nothing was sent; in the others the endpoint may have got the request, and gets it again, with the same
`webhook-id`, when it is retried.

An attempt succeeds with a status from 200 to 299 and with nothing else. Once the headers of a response are complete
its status decides, even if the body is cut off, endless (reading stops at 64 KiB) or nonsense; but a body that is
still dripping at the deadline is a `timeout`, as the deadline is for the whole exchange. `response_status` is kept
whenever a status was read, also with these codes.
"""
_AFTER = """Names are looked up for at most 3 seconds, connections and TLS are made in at most 5, and the timeout of
the subscription is for all of it.

## Problems of the HTTP API

Errors of the API are `application/problem+json` (RFC 9457). `code` is stable and is what programs should look at;
`title` and `detail` are sentences for people. `errors` names the fields that are wrong, `request_id` is what the
server's log knows the request by.
"""


def error_codes_reference() -> str:
    """The whole page."""
    return "\n".join(
        [
            head("Error codes of attempts", "src/tidings/courier/error_codes.py and api/problems.py", _SAYS),
            table(("code", "what happened"), ((code(name), says) for name, says in SITUATIONS.items())),
            _AFTER,
            table(
                ("code of a problem", "status", "title"),
                ((f"**{name}**", str(kind.status), kind.title) for name, kind in KINDS.items()),
            ),
        ]
    )
