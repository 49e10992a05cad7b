"""`subscriptions`: who gets which events. A secret is printed once, when it is made."""

import datetime
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import Annotated, Any

import typer

from tidings.cli import checking
from tidings.cli import subscription_view as view
from tidings.cli.acting import observed, on_installation, person
from tidings.cli.listing import AsJson, Limit, duration, moment, say_more
from tidings.cli.progress import replay_progress
from tidings.cli.subscription_input import headers, limits, only_given, typed_secret
from tidings.decisions.subscribing import LIMITS
from tidings.errors import SubscriptionRefused
from tidings.model.endpoint_check import CheckOutcome
from tidings.model.lane import SeenLane
from tidings.model.subscription import Subscription, Verification
from tidings.roles.observer.filters import SubscriptionFilter
from tidings.roles.observer.lanes import LaneObserver
from tidings.roles.observer.pages import PageObserver
from tidings.roles.observer.subscriptions import SeenSubscription
from tidings.roles.router.backfill import Backfilled, backfill
from tidings.roles.subscriptions import actions
from tidings.roles.subscriptions.actions import Outcome
from tidings.roles.verifier.actions import trust
from tidings.roles.verifier.asking import ask_test, ask_verification
from tidings.roles.verifier.operations import Verdict, VerifierOperations
from tidings.settings import Settings
from tidings.wiring import Installation, rules_of

OWN_FLAGS = tuple(f"--{name.replace('_', '-')}" for name in LIMITS)
"""Settings have the same names: after the word `subscriptions` they mean that one subscription."""

app = typer.Typer(help="Who gets which events: add, change, pause and look at subscriptions.", no_args_is_help=True)

Id = Annotated[int, typer.Argument(help="Which subscription.")]
Domain = Annotated[str | None, typer.Option("--domain", help="Of which domain; * for all. At first: default.")]
Description = Annotated[str | None, typer.Option(help="A line for people, at most 500 signs.")]
Headers = Annotated[
    list[str] | None, typer.Option("--header", help="'Name: value', sent with each request; repeat it for more.")
]
HowVerified = Annotated[
    Verification | None,
    typer.Option("--verification", help="none: only for hosts on the allow lists. At first: proof."),
]
MaxRetryLimit = Annotated[str | None, typer.Option(help="Attempts in all.", metavar="NUMBER")]
BaseDelay = Annotated[str | None, typer.Option(help="Delay after the first failure.", metavar="DURATION")]
Timeout = Annotated[str | None, typer.Option(help="Deadline of one request.", metavar="DURATION")]
MaxInFlight = Annotated[str | None, typer.Option(help="Requests at a time for each worker.", metavar="NUMBER")]
Wait = Annotated[str, typer.Option(help="How long to wait for the call.", metavar="DURATION")]
Reason = Annotated[str, typer.Option(help="Why, for those who read the audit log.")]
Secret = Annotated[str | None, typer.Option(help="A secret of your own, whsec_…; - reads it from standard input.")]


def add_to(main: typer.Typer) -> None:
    main.add_typer(app, name="subscriptions")


@app.command()
def add(
    type_: Annotated[str, typer.Option("--type", help="Which events: order.paid, order.*, or *.")],
    url: Annotated[str, typer.Option(help="Where to: https://…")],
    domain: Domain = None,
    description: Description = None,
    secret: Secret = None,
    header: Headers = None,
    verification: HowVerified = None,
    max_retry_limit: MaxRetryLimit = None,
    base_delay_seconds: BaseDelay = None,
    timeout_seconds: Timeout = None,
    max_in_flight: MaxInFlight = None,
    json: AsJson = False,
) -> None:
    """Make a subscription; print its id and its secret, which is shown only now."""
    given = {
        **only_given(event_type=type_, callback_url=url, event_domain=domain, description=description),
        **only_given(verification=verification, headers=headers(header), secret=typed_secret(secret)),
        **limits(max_retry_limit, base_delay_seconds, timeout_seconds, max_in_flight),
    }
    on_installation(lambda found: _add(found, given, json))


async def _add(found: Installation, given: dict[str, Any], json: bool) -> None:
    async with found.engine("subscription_admin", size=1) as engine:
        created = await actions.create(
            engine, given, actor=person(), rules=rules_of(found.settings), vault=found.vault()
        )
    made = created.subscription
    try:
        if made.verification is Verification.NONE and await _trust(found, made.id):
            made = (await _look(found, made.id)).subscription
    finally:
        # Whatever happens after it was stored: this is the only moment to learn the secret.
        view.show_created(replace(created, subscription=made), json)


@app.command("list")
def list_(
    limit: Limit = 100,
    after: Annotated[int, typer.Option(help="Only those with a higher id.")] = 0,
    json: AsJson = False,
) -> None:
    """List the subscriptions, oldest first."""
    page = observed(PageObserver, lambda see: see.subscriptions(SubscriptionFilter(), limit, [after]))
    view.show_list(page.items, json)
    say_more(page.next, "--after")


@app.command()
def show(id: Id, json: AsJson = False) -> None:
    """Show one subscription; its secrets and headers are shown to nobody."""
    seen, lane, settings = on_installation(lambda found: _look_closely(found, id))
    view.show_one(seen, lane, settings, json)


@app.command()
def edit(
    id: Id,
    type_: Annotated[str | None, typer.Option("--type", help="Which events: order.paid, order.*, or *.")] = None,
    url: Annotated[str | None, typer.Option(help="Where to; the old one stays in force until it is verified.")] = None,
    domain: Domain = None,
    description: Description = None,
    header: Headers = None,
    no_headers: Annotated[bool, typer.Option("--no-headers", help="Remove all headers.")] = False,
    verification: HowVerified = None,
    max_retry_limit: MaxRetryLimit = None,
    base_delay_seconds: BaseDelay = None,
    timeout_seconds: Timeout = None,
    max_in_flight: MaxInFlight = None,
    expected_version: Annotated[int | None, typer.Option(help="Change nothing if it has another version.")] = None,
    json: AsJson = False,
) -> None:
    """Change only what is given. A limit of `default` is that of the settings; headers are replaced as a whole."""
    if header and no_headers:
        raise SubscriptionRefused("--header and --no-headers exclude each other.", field="headers")
    given = {
        **only_given(event_type=type_, callback_url=url, event_domain=domain, description=description),
        **only_given(verification=verification, headers={} if no_headers else headers(header)),
        **limits(max_retry_limit, base_delay_seconds, timeout_seconds, max_in_flight),
    }
    if not given:
        raise SubscriptionRefused(
            "There is nothing to change.", "`tidings subscriptions edit --help` shows what can be."
        )
    on_installation(lambda found: _edit(found, id, given, expected_version, json))


async def _edit(found: Installation, id: int, given: dict[str, Any], version: int | None, json: bool) -> None:
    async with found.engine("subscription_admin", size=1) as engine:
        outcome = await actions.edit(
            engine,
            id,
            given,
            actor=person(),
            rules=rules_of(found.settings),
            vault=found.vault(),
            expected_version=version,
        )
    trusted = outcome.subscription.verification is Verification.NONE and await _trust(found, id)
    await _tell(found, replace(outcome, changed=outcome.changed or trusted), "as you want it", json)


@app.command()
def verify(id: Id, wait: Wait = "30s", json: AsJson = False) -> None:
    """Put the URL of a subscription in force, once its endpoint has answered a challenge. Exit 1 if it has not."""
    seconds = duration(wait, "wait")

    async def work(found: Installation) -> bool:
        seen = (await _look(found, id)).subscription
        if seen.verification is Verification.NONE:
            await _tell(found, Outcome(seen, await _trust(found, id)), "trusted", json)
            return True
        return await _verify(found, seen, seconds, json)

    if not on_installation(work):
        raise typer.Exit(1)


async def _verify(found: Installation, seen: Subscription, seconds: float, json: bool) -> bool:
    async with found.engine("subscription_verifier", size=1) as engine:
        check = await ask_verification(engine, seen.id, actor=person(), rules=rules_of(found.settings).destinations)
        if check is None:
            await _tell(found, Outcome(seen, False), "verified", json)
            return True
        verdict = await checking.awaited(engine, check, seconds)
    checking.tell_verification(verdict, seconds)
    passed = verdict.outcome is CheckOutcome.PASSED
    await _tell(found, Outcome(seen, passed), "verified" if passed else "", json)
    return passed


@app.command("test")
def send_test(id: Id, wait: Wait = "30s", json: AsJson = False) -> None:
    """Send a test event to this one subscription only; show how its endpoint took it. Exit 1 if it did not."""
    seconds = duration(wait, "wait")

    async def work(found: Installation) -> Verdict:
        async with found.engine("subscription_verifier", size=1) as engine:
            check = await ask_test(engine, id, actor=person(), rules=rules_of(found.settings).destinations)
            return await checking.awaited(engine, check, seconds)

    verdict = on_installation(work)
    checking.show_test(id, verdict, seconds, json)


@app.command()
def pause(id: Id, reason: Reason = "", json: AsJson = False) -> None:
    """Hold: events are still kept for it, nothing is sent, nothing is lost."""
    _switch(partial(actions.pause, reason=reason), id, "paused", json)


@app.command()
def resume(id: Id, reason: Reason = "", json: AsJson = False) -> None:
    """End a pause; what waited is sent."""
    _switch(partial(actions.resume, reason=reason), id, "resumed", json)


@app.command()
def activate(id: Id, json: AsJson = False) -> None:
    """Take part in routing again."""
    _switch(actions.activate, id, "activated", json)


@app.command()
def deactivate(id: Id, json: AsJson = False) -> None:
    """Take no part in routing: events pass it by. Use `pause` to hold them instead."""
    _switch(actions.deactivate, id, "deactivated", json)


@app.command("rotate-secret")
def rotate_secret(
    id: Id,
    overlap: Annotated[str, typer.Option(help="How long the older secrets stay valid; 0 ends them now.")] = "24h",
    secret: Secret = None,
    json: AsJson = False,
) -> None:
    """Make a new secret and print it; it is shown only now."""
    seconds = duration(overlap, "overlap_seconds")
    own = typed_secret(secret)

    async def work(found: Installation) -> str:
        async with found.engine("subscription_admin", size=1) as engine:
            return await actions.rotate_secret(
                engine, id, actor=person(), vault=found.vault(), overlap_seconds=seconds, secret=own
            )

    made = on_installation(work)
    view.show_rotated(id, made, seconds, json)


@app.command()
def replay(
    id: Id,
    since: Annotated[str, typer.Option(help="From when on: 2026-01-31T10:00:00Z, or how long ago: 2h, 7d.")],
    json: AsJson = False,
) -> None:
    """Make up for what it missed: past events that its routes would send to it now, and that it never got.

    Nothing is sent twice, so it may be broken off and begun again.
    """
    start = moment(since, "since")
    assert start is not None
    done = on_installation(lambda found: _replay(found, id, start))
    view.show_replayed(id, done, json)


async def _replay(found: Installation, id: int, since: datetime.datetime) -> Backfilled:
    done = Backfilled(0, 0, 0, is_done=False)
    async with found.engine("event_router", size=1) as engine:
        with replay_progress() as show:
            async for done in backfill(engine, id, since, person()):
                show(done.looked_at, done.made)
    return done


async def _look(found: Installation, id: int) -> SeenSubscription:
    async with found.engine("observer", size=1) as engine:
        return await PageObserver.step(engine, lambda see: see.subscription(id))


async def _look_closely(found: Installation, id: int) -> tuple[SeenSubscription, SeenLane, Settings]:
    start = found.settings.flow_control.window_start
    async with found.engine("observer", size=1) as engine:
        seen = await PageObserver.step(engine, lambda see: see.subscription(id))
        return seen, await LaneObserver.step(engine, lambda see: see.lane(id, start)), found.settings


async def _trust(found: Installation, id: int) -> bool:
    destinations = rules_of(found.settings).destinations
    async with found.engine("subscription_verifier", size=1) as engine:
        return await VerifierOperations.step(
            engine, lambda operations: trust(operations, id, actor=person(), rules=destinations)
        )


def _switch(action: Callable[..., Awaitable[Outcome]], id: int, done: str, json: bool) -> None:
    async def work(found: Installation) -> None:
        async with found.engine("subscription_admin", size=1) as engine:
            outcome = await action(engine, id, actor=person())
        await _tell(found, outcome, done, json)

    on_installation(work)


async def _tell(found: Installation, outcome: Outcome, done: str, json: bool) -> None:
    view.show_outcome(await _look(found, outcome.subscription.id), outcome.changed, done, json)
