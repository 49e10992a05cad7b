"""How subscriptions look on a terminal and in JSON."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

from rich.table import Table
from rich.text import Text

from tidings.cli.output import out, say, show_json
from tidings.model.lane import SeenLane
from tidings.model.subscription import Subscription
from tidings.roles.observer.subscriptions import SeenSubscription
from tidings.roles.router.backfill import Backfilled
from tidings.roles.subscriptions.actions import Created
from tidings.settings import Settings
from tidings.settings.values import duration_text

VERIFY = "`tidings subscriptions verify {id}`"


def show_created(created: Created, json: bool) -> None:
    made = created.subscription
    if json:
        show_json({**_json(made), "secret": created.secret})
        return
    _pairs([("id", str(made.id)), ("secret", created.secret), ("state", made.state)])
    say("The secret is shown only now: give it to whoever receives the events.")
    if not made.verified:
        say(f"Nothing is sent to it until it is verified: {VERIFY.format(id=made.id)}.")


def show_rotated(id: int, secret: str, overlap: float, json: bool) -> None:
    if json:
        show_json({"id": id, "secret": secret, "overlap_seconds": overlap})
        return
    _pairs([("id", str(id)), ("secret", secret)])
    older = f"stay valid for {duration_text(overlap)}" if overlap else "are no longer valid"
    say(f"The secret is shown only now. The older ones {older}.")


def show_replayed(id: int, done: Backfilled, json: bool) -> None:
    if json:
        show_json({"id": id, "looked_at": done.looked_at, "made": done.made, "refused": done.refused})
        return
    out.print(f"{done.looked_at} past events, {done.made} of them are now on their way to subscription {id}.")
    if done.refused:
        say(f"The database refused {done.refused}; the log says why.")


def show_list(seen: Sequence[SeenSubscription], json: bool) -> None:
    if json:
        show_json([_seen_json(each) for each in seen])
        return
    if not seen:
        say("There are none. `tidings subscriptions add --type T --url U` makes one.")
        return
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold", expand=False)
    table.add_column("id", justify="right", no_wrap=True)
    for heading in ("events", "to", "state"):
        table.add_column(heading, overflow="fold")
    for subscription in (each.subscription for each in seen):
        table.add_row(str(subscription.id), _events(subscription), _urls(subscription), _state(subscription))
    # A table needs the width that lines of text do without.
    out.print(table, soft_wrap=False)


def show_one(seen: SeenSubscription, lane: SeenLane, settings: Settings, json: bool) -> None:
    if json:
        show_json({**_seen_json(seen), "lane": _lane_json(lane, settings)})
    else:
        _pairs(_lines(seen, lane, settings))


def show_outcome(seen: SeenSubscription, changed: bool, done: str, json: bool) -> None:
    """What was asked for, and what the subscription has come to; without `done` only the latter."""
    subscription = seen.subscription
    if json:
        show_json({**_seen_json(seen), "changed": changed})
        return
    was = f"is {done}" if changed else f"was {done} already; nothing was written"
    if done:
        out.print(f"Subscription {subscription.id} {was}.", markup=False)
    out.print(Text.assemble("It is now ", _state(subscription), "."))
    if subscription.pending_callback_url:
        say(f"{subscription.pending_callback_url} waits for {VERIFY.format(id=subscription.id)}.")
        say(f"Until then {subscription.callback_url} stays.")


def _lines(seen: SeenSubscription, lane: SeenLane, settings: Settings) -> Iterator[tuple[str, str | Text]]:
    subscription, retries = seen.subscription, settings.retries
    yield "id", str(subscription.id)
    yield "state", _state(subscription)
    yield "event type", subscription.event_type
    yield "event domain", subscription.event_domain
    yield "URL", subscription.callback_url
    if subscription.pending_callback_url:
        yield "pending URL", subscription.pending_callback_url
    yield "verification", str(subscription.verification)
    yield "description", subscription.description or "–"
    yield "attempts", _or_setting(subscription.max_retry_limit, retries.max_retry_limit, str)
    yield "first delay", _or_setting(subscription.base_delay_seconds, retries.base_delay_seconds, duration_text)
    yield "timeout", _or_setting(subscription.timeout_seconds, settings.sending.timeout_seconds, duration_text)
    in_flight = _or_setting(subscription.max_in_flight, settings.worker.max_in_flight, str)
    yield "in flight", f"{in_flight}, for each worker"
    is_held = subscription.paused or not (subscription.active and subscription.verified)
    yield "deliveries", lane.words(settings.flow_control.window_max, is_held)
    yield "version", str(subscription.config_version)
    yield "created", seen.created_at.isoformat(" ", "seconds")
    yield "updated", seen.updated_at.isoformat(" ", "seconds")


def _or_setting(own: Any, setting: Any, say_it: Any) -> str:
    return f"{say_it(setting)} (by the settings)" if own is None else say_it(own)


def _pairs(pairs: Iterable[tuple[str, str | Text]]) -> None:
    """One line for each, never folded: what is copied from here stays in one piece."""
    lines = [*pairs]
    width = max(len(name) for name, _ in lines)
    for name, value in lines:
        out.print(Text.assemble((f"{name:<{width}}  ", "dim"), value))


def _events(subscription: Subscription) -> Text:
    elsewhere = subscription.event_domain != "default"
    return Text.assemble(subscription.event_type, (f"\nin {subscription.event_domain}", "dim") if elsewhere else "")


def _urls(subscription: Subscription) -> Text:
    pending = subscription.pending_callback_url
    return Text.assemble(subscription.callback_url, (f"\n→ {pending}", "yellow") if pending else "")


def _state(subscription: Subscription) -> Text:
    if not subscription.active:
        return Text(subscription.state, style="dim")
    in_force = subscription.verified and not subscription.paused
    return Text(subscription.state, style="green" if in_force else "yellow")


def _json(subscription: Subscription) -> dict[str, Any]:
    return {**asdict(subscription), "verification": str(subscription.verification), "state": subscription.state}


def _lane_json(lane: SeenLane, settings: Settings) -> dict[str, Any]:
    moments = {"last_failure_at": lane.last_failure_at, "next_try_at": lane.next_try_at}
    return {
        "window_size": lane.window_size,
        "window_max": settings.flow_control.window_max,
        "failures": lane.failures,
        "last_error_code": lane.last_error_code,
        "is_under_way": lane.is_under_way,
        **{name: moment.isoformat() if moment else None for name, moment in moments.items()},
    }


def _seen_json(seen: SeenSubscription) -> dict[str, Any]:
    times = {"created_at": seen.created_at.isoformat(), "updated_at": seen.updated_at.isoformat()}
    return {**_json(seen.subscription), **times}
