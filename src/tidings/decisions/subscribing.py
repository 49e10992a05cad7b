"""What a subscription may be: checks what is asked for, all of it, and decides what an edit changes."""

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tidings.decisions.destinations import DestinationRules, is_on_allow_lists, read_destination
from tidings.decisions.headers import read_headers
from tidings.decisions.matching import ANY, is_pattern
from tidings.decisions.secret_keys import SECRET_PREFIX, decoded, secret_text
from tidings.decisions.texts import LONGEST_NAME, LONGEST_REASON, RefusingAs, one_line, visible_name
from tidings.errors import SubscriptionRefused
from tidings.model.subscription import Limits, NewSubscription, Subscription, Verification

MAX_DESCRIPTION, MAX_ATTEMPTS = 500, 1000
LEAST_DELAY, LEAST_TIMEOUT = 0.001, 0.1
LONGEST_OVERLAP = 366 * 86_400
LIMITS = tuple(Limits.__dataclass_fields__)


@dataclass(frozen=True)
class SubscriptionRules:
    """The bounds that the settings set."""

    destinations: DestinationRules = field(default_factory=DestinationRules)
    longest_timeout: float = 50.0
    longest_delay: float = 21_600.0
    most_in_flight: int = 64


Reader = Callable[[Any, SubscriptionRules], Any]


def check_new(given: Mapping[str, Any], rules: SubscriptionRules) -> NewSubscription:
    """Everything that is wrong is told at once."""
    problems: list[SubscriptionRefused] = []
    values = _read(given, _NEW, rules, problems)
    problems += [_missing(name) for name in ("event_type", "callback_url") if name not in given]
    verification = values.get("verification", Verification.PROOF)
    if verification is Verification.NONE and "callback_url" in values:
        problems += _untrusted(values["callback_url"], rules)
    _refuse_all(problems)
    return NewSubscription(
        event_type=values["event_type"],
        callback_url=values["callback_url"],
        event_domain=values.get("event_domain", "default"),
        description=values.get("description", ""),
        verification=verification,
        limits=Limits(**{name: values.get(name) for name in LIMITS}),
        headers=values.get("headers", {}),
        secret=values.get("secret"),
    )


def check_changes(given: Mapping[str, Any], rules: SubscriptionRules) -> dict[str, Any]:
    """What an edit asks for, as far as it can be judged without the subscription."""
    problems: list[SubscriptionRefused] = []
    values = _read(given, _CHANGEABLE, rules, problems)
    _refuse_all(problems)
    return values


def changed_columns(current: Subscription, wanted: Mapping[str, Any], rules: SubscriptionRules) -> dict[str, Any]:
    """The columns that the edit changes, with their new values; a new URL waits until it is put in force."""
    columns = {name: value for name, value in wanted.items() if name not in ("callback_url", "headers")}
    if "callback_url" in wanted:
        url = wanted["callback_url"]
        columns["pending_callback_url"] = None if url == current.callback_url else url
    changed = {name: value for name, value in columns.items() if getattr(current, name) != value}
    _refuse_all([*_switched(current, changed), *_trust_of(current, changed, rules)])
    return changed


def check_secret(raw: Any) -> str:
    """The text of a given secret, in the one form of it that is kept."""
    key = decoded(raw) if isinstance(raw, str) and raw.startswith(SECRET_PREFIX) else b""
    if not 24 <= len(key) <= 64:
        raise SubscriptionRefused(
            "The secret is not one that Standard Webhooks allow.",
            f"Write {SECRET_PREFIX} and the base64 of 24 to 64 random bytes, or leave it out to have one made.",
            field="secret",
        )
    return secret_text(key)


def check_overlap(raw: Any) -> int:
    """For how many seconds the older secrets stay valid."""
    return math.ceil(_number(raw, "overlap_seconds", 0, LONGEST_OVERLAP))


def check_reason(raw: str) -> str:
    """Why somebody holds or resumes a subscription, for those who read the audit log."""
    with RefusingAs(SubscriptionRefused):
        return one_line(raw, "reason", LONGEST_REASON).strip()


def _read(
    given: Mapping[str, Any],
    readers: Mapping[str, Reader],
    rules: SubscriptionRules,
    problems: list[SubscriptionRefused],
) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, raw in given.items():
        try:
            values[name] = readers.get(name, _nobody_sets(name, readers))(raw, rules)
        except SubscriptionRefused as refused:
            problems.append(refused)
    return values


def _refuse_all(problems: Iterable[SubscriptionRefused]) -> None:
    found = list(problems)
    if len(found) == 1:
        raise found[0]
    if found:
        told = [f"  - {each.what}{f' {each.remedy}' if each.remedy else ''}" for each in found]
        raise SubscriptionRefused(
            "\n".join(["The subscription can't be taken:", *told]),
            field=", ".join(each.field for each in found),
            parts=found,
        )


def _nobody_sets(name: str, readers: Collection[str]) -> Reader:
    def refuse(raw: Any, rules: SubscriptionRules) -> Any:
        if name == "verified":
            what = "Nobody can call a subscription verified."
            raise SubscriptionRefused(what, "Ask for its verification instead.", field=name)
        raise SubscriptionRefused(
            f"There is no field {name[:100]!r} that can be set here.", f"There are: {', '.join(readers)}.", field=name
        )

    return refuse


def _missing(name: str) -> SubscriptionRefused:
    return SubscriptionRefused(f"{name} is missing.", field=name)


def _untrusted(url: str, rules: SubscriptionRules) -> Iterator[SubscriptionRefused]:
    destination = read_destination(url, rules.destinations)
    if not is_on_allow_lists(destination, rules.destinations):
        yield SubscriptionRefused(
            f"{destination.host} is on no allow list, so it must be verified.",
            "Use the verification `proof` or `echo`, or add the host to TIDINGS_ALLOW_HTTP_HOSTS"
            " or its address to TIDINGS_ALLOW_NETWORKS.",
            field="verification",
        )


def _switched(current: Subscription, changed: Mapping[str, Any]) -> Iterator[SubscriptionRefused]:
    """What stands as trusted must not come to stand as verified, nor the other way."""
    wanted = changed.get("verification", current.verification)
    if current.verified and wanted != current.verification and Verification.NONE in (current.verification, wanted):
        yield SubscriptionRefused(
            f"The subscription is {current.standing}, and can't become otherwise.",
            "Make a new subscription with the other verification, and deactivate this one.",
            field="verification",
        )


def _trust_of(
    current: Subscription, changed: Mapping[str, Any], rules: SubscriptionRules
) -> Iterator[SubscriptionRefused]:
    """Without verification, what is to be put in force must be on the allow lists."""
    verification = changed.get("verification", current.verification)
    url = changed.get("pending_callback_url", current.pending_callback_url) or current.callback_url
    if verification is Verification.NONE and {"verification", "pending_callback_url"} & changed.keys():
        yield from _untrusted(url, rules)


def _event_type(raw: Any, rules: SubscriptionRules) -> str:
    text = _visible(raw, "event_type")
    if not is_pattern(text):
        raise SubscriptionRefused(
            f"The event type {text!r} is no pattern.",
            "A * stands alone or as the last segment: order.*",
            field="event_type",
        )
    return text


def _event_domain(raw: Any, rules: SubscriptionRules) -> str:
    text = _visible(raw, "event_domain")
    if ANY in text and text != ANY:
        raise SubscriptionRefused(
            f"The domain {text!r} is neither a name nor *.",
            "Name one domain, or write * for all.",
            field="event_domain",
        )
    return text


def _visible(raw: Any, name: str) -> str:
    with RefusingAs(SubscriptionRefused):
        return visible_name(raw, name, LONGEST_NAME)


def _callback_url(raw: Any, rules: SubscriptionRules) -> str:
    return read_destination(raw, rules.destinations).url


def _description(raw: Any, rules: SubscriptionRules) -> str:
    if not isinstance(raw, str) or len(raw) > MAX_DESCRIPTION or not raw.isprintable():
        what = f"description must be one line of at most {MAX_DESCRIPTION} signs."
        raise SubscriptionRefused(what, field="description")
    return raw


def _verification(raw: Any, rules: SubscriptionRules) -> Verification:
    if raw not in tuple(Verification):
        what = f"verification must be one of {', '.join(Verification)}."
        raise SubscriptionRefused(what, field="verification")
    return Verification(raw)


def _truth(name: str) -> Reader:
    def read(raw: Any, rules: SubscriptionRules) -> bool:
        if not isinstance(raw, bool):
            raise SubscriptionRefused(f"{name} must be true or false.", field=name)
        return raw

    return read


def _max_retry_limit(raw: Any, rules: SubscriptionRules) -> int | None:
    return None if raw is None else _whole(raw, "max_retry_limit", MAX_ATTEMPTS)


def _base_delay_seconds(raw: Any, rules: SubscriptionRules) -> float | None:
    return None if raw is None else _number(raw, "base_delay_seconds", LEAST_DELAY, rules.longest_delay)


def _timeout_seconds(raw: Any, rules: SubscriptionRules) -> float | None:
    """Ruling 9: it must fit in a lease."""
    return None if raw is None else _number(raw, "timeout_seconds", LEAST_TIMEOUT, rules.longest_timeout)


def _max_in_flight(raw: Any, rules: SubscriptionRules) -> int | None:
    return None if raw is None else _whole(raw, "max_in_flight", rules.most_in_flight)


def _whole(raw: Any, name: str, most: int) -> int:
    if isinstance(raw, bool) or not isinstance(raw, int) or not 1 <= raw <= most:
        raise SubscriptionRefused(f"{name} must be a whole number from 1 to {most}.", field=name)
    return raw


def _number(raw: Any, name: str, least: float, most: float) -> float:
    if isinstance(raw, bool) or not isinstance(raw, int | float) or not least <= raw <= most:
        raise SubscriptionRefused(f"{name} must be a number of seconds from {least:g} to {most:g}.", field=name)
    return float(raw)


_CHANGEABLE: Mapping[str, Reader] = {
    "event_type": _event_type,
    "callback_url": _callback_url,
    "event_domain": _event_domain,
    "description": _description,
    "verification": _verification,
    "headers": lambda raw, rules: read_headers(raw),
    "max_retry_limit": _max_retry_limit,
    "base_delay_seconds": _base_delay_seconds,
    "timeout_seconds": _timeout_seconds,
    "max_in_flight": _max_in_flight,
    "active": _truth("active"),
    "paused": _truth("paused"),
}
_NEW: Mapping[str, Reader] = {
    **{name: reader for name, reader in _CHANGEABLE.items() if name not in ("active", "paused")},
    "secret": lambda raw, rules: check_secret(raw),
}
