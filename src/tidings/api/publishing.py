"""`POST /v1/events`: from the bytes of a request to events in the log. Payloads are cut out of it, byte for byte."""

import re
from collections.abc import Sequence

import msgspec

from tidings.api.context import Api
from tidings.api.problems import MOST_TOLD, Refused
from tidings.decisions.accepting import accept
from tidings.errors import EventRefused
from tidings.ids import new_correlation_id
from tidings.model.event import NewEvent
from tidings.model.key import Caller

MOST_BYTES = 8 * 1024 * 1024
MOST_EVENTS = 100
LONGEST_KEY = 200
_PLACE = re.compile(r" - at `\$([^`]*)`$")
_STEP = re.compile(r"\.([A-Za-z_]\w*)|\[(\d+)\]")
_MISSING = re.compile(r"(?:required|unknown) field `([^`]+)`")


class Given(msgspec.Struct, forbid_unknown_fields=True):
    """One event as it comes; null is the same as nothing."""

    event_type: str
    payload: msgspec.Raw
    external_id: str | None = None
    event_domain: str | None = None
    event_stream: str | None = None
    correlation_id: str | None = None


_decoder = msgspec.json.Decoder(Given | list[Given])
_encoder = msgspec.json.Encoder()


class Publisher:
    def __init__(self, api: Api) -> None:
        self._api = api

    async def published(self, caller: Caller, body: bytes, idempotency_key: bytes | None) -> bytes:
        """The answer: an object for an object, a list for a list. All are stored, or none."""
        given = _read(body)
        key = None if idempotency_key is None else _key(idempotency_key)
        many = isinstance(given, list)
        events = given if isinstance(given, list) else [given]
        if not 1 <= len(events) <= MOST_EVENTS:
            raise Refused(
                "invalid",
                f"{len(events)} events at once; 1 to {MOST_EVENTS} are taken.",
                [("", "has none or too many")],
            )
        accepted = self._accepted(caller, events, key, many)
        ingest = await self._api.ingest()
        answers = await ingest.publish(accepted)
        return _encoder.encode(answers if many else answers[0])

    def _accepted(self, caller: Caller, events: Sequence[Given], key: str | None, many: bool) -> list[NewEvent]:
        accepted: list[NewEvent] = []
        wrong: list[tuple[str, str]] = []
        for place, given in enumerate(events):
            try:
                external_id = given.external_id
                if external_id is None and key is not None:
                    # Sent again, the same list has the same places.
                    external_id = f"{key}:{place}" if many else key
                accepted.append(self._one(caller, given, external_id))
            except EventRefused as error:
                wrong.append(
                    (f"/{place}/{error.field}" if many else f"/{error.field}", f"{error.what} {error.remedy}".strip())
                )
                if len(wrong) == MOST_TOLD:
                    break
        if wrong:
            raise Refused("invalid", "Nothing was stored: " + wrong[0][1], wrong)
        return accepted

    def _one(self, caller: Caller, given: Given, external_id: str | None) -> NewEvent:
        domain = given.event_domain if given.event_domain is not None else caller.event_domain or "default"
        if caller.event_domain not in (None, domain):
            raise Refused("forbidden", f"This key may publish to the domain {caller.event_domain!r} only.")
        return accept(
            given.event_type,
            bytes(given.payload),
            external_id=external_id,
            event_domain=domain,
            event_stream=given.event_stream or "",
            correlation_id=new_correlation_id() if given.correlation_id is None else given.correlation_id,
            limits=self._api.limits,
        )


def _read(body: bytes) -> Given | list[Given]:
    try:
        given: Given | list[Given] = _decoder.decode(body)
        return given
    except msgspec.ValidationError as error:
        raise _invalid(str(error)) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Refused("malformed", f"The body is no JSON: {error}.") from None
    except RecursionError:
        raise Refused("invalid", "The body is nested too deep.", [("", "is nested too deep")]) from None


def _invalid(said: str) -> Refused:
    found = _PLACE.search(said)
    what = said[: found.start()] if found else said
    steps = [name or number for name, number in _STEP.findall(found[1])] if found else []
    if named := _MISSING.search(what):
        steps.append(named[1])
    return Refused("invalid", f"Nothing was stored: {what}.", [("".join(f"/{step}" for step in steps), what)])


def _key(raw: bytes) -> str:
    """A quoted string, as the draft of the IETF has it, or the bare text."""
    text = raw.decode("latin-1").strip()
    if len(text) >= 2 and text[0] == text[-1] == '"':
        text = text[1:-1]
    if not 1 <= len(text) <= LONGEST_KEY or not text.isascii() or not text.isprintable():
        raise Refused(
            "malformed",
            f"Idempotency-Key must be 1 to {LONGEST_KEY} visible ASCII characters.",
            [("#Idempotency-Key", "is not usable")],
        )
    return text
