"""The form of a subscription: between what people typed and what an action takes."""

from collections.abc import Callable
from typing import Any

from tidings.console.forms import Form
from tidings.decisions.headers import headers_in
from tidings.decisions.subscribing import LIMITS, SubscriptionRules, check_changes, check_new
from tidings.errors import InputRefused, SubscriptionRefused
from tidings.model.subscription import Subscription, Verification

KEEP, REPLACE, REMOVE = "keep", "replace", "remove"
"""What an edit does with the headers, which nobody can read back."""
_TEXTS = ("event_type", "callback_url", "event_domain", "description", "verification")
FIRST = Form([("event_domain", "default"), ("verification", Verification.PROOF.value), ("event_type", "*")])
"""What an empty form begins with."""


def values_of(subscription: Subscription) -> Form:
    """What the form of an edit begins with."""
    told = {name: getattr(subscription, name) for name in (*_TEXTS, *LIMITS)}
    return Form([(name, _text(value)) for name, value in (told | {"callback_url": subscription.latest_url}).items()])


def _text(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:g}" if isinstance(value, float) else str(value)


def read_new(form: Form, rules: SubscriptionRules) -> dict[str, Any]:
    """All that is wrong is refused at once, by field."""
    given = _read(form)
    if secret := form.text("secret"):
        given["secret"] = secret
    return _checked(form, given, lambda: check_new(given, rules), with_headers=bool(form.text("headers")))


def read_changes(form: Form, rules: SubscriptionRules) -> dict[str, Any]:
    given = _read(form)
    choice = form.text("headers_choice")
    if choice == REMOVE:
        given["headers"] = {}
    return _checked(form, given, lambda: check_changes(given, rules), with_headers=choice == REPLACE)


def _read(form: Form) -> dict[str, Any]:
    limits = {name: _number(form.text(name)) for name in LIMITS}
    return {**{name: form.text(name) for name in _TEXTS}, **limits}


def _checked(form: Form, given: dict[str, Any], check: Callable[[], object], *, with_headers: bool) -> dict[str, Any]:
    problems: list[InputRefused] = []
    try:
        if with_headers:
            given["headers"] = headers_in(filter(None, map(str.strip, form["headers"].splitlines())))
    except SubscriptionRefused as refused:
        problems.append(refused)
    try:
        check()
    except InputRefused as refused:
        problems += refused.parts
    if problems:
        what = " ".join(each.what for each in problems)
        raise SubscriptionRefused(what, field=", ".join(each.field for each in problems), parts=problems)
    return given


def _number(text: str) -> Any:
    """What is none is left as it is: whoever judges it says what would be right."""
    if not text:
        return None
    if text.isascii() and text.isdecimal() and len(text) < 20:
        return int(text)
    try:
        return float(text)
    except ValueError:
        return text
