"""`keys`: who may call the HTTP API, and what for. A key is printed once, when it is made."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from tidings.cli.acting import as_role, person
from tidings.cli.listing import AsJson, Limit, duration, say_more, show_list, show_one
from tidings.cli.output import out, say
from tidings.decisions.keys import check_new_key, scopes_text
from tidings.model.key import Scope
from tidings.roles.keys import actions
from tidings.roles.keys.operations import StoredKey
from tidings.roles.observer.listing import page_of

ROLE = "key_admin"
COLUMNS = ("id", "public_id", "name", "scopes", "event_domain", "is_valid", "last_used_at", "expires_at")

app = typer.Typer(help="Who may call the HTTP API, and what for.")


def add_to(root: typer.Typer) -> None:
    root.add_typer(app, name="keys", no_args_is_help=True)


@app.command()
def add(
    name: Annotated[str, typer.Option(help="Whose key it is, or what for.")],
    scope: Annotated[
        list[Scope],
        typer.Option(help="publisher may only publish; viewer reads; operator also acts; admin does everything."),
    ],
    domain: Annotated[str | None, typer.Option(help="Bind it to this one event domain.")] = None,
    expires: Annotated[
        str | None, typer.Option(help="For how long it is valid, such as 90d; without it for ever.")
    ] = None,
    json: AsJson = False,
) -> None:
    """Make a key and print it; it is shown only now."""
    new = check_new_key(name, scope, domain, None if expires is None else duration(expires, "expires"))
    made = as_role(ROLE, lambda engine: actions.add(engine, new, person()))
    if json:
        show_one({**_shown(made.stored), "key": made.key}, as_json=True)
        return
    out.print(made.key, markup=False)
    say(f"This is the only time it is shown. To end it: tidings keys revoke {made.stored.public_id}")


@app.command("list")
def list_(
    limit: Limit = 100,
    after: Annotated[int, typer.Option(help="Go on after this one of a page.")] = 0,
    json: AsJson = False,
) -> None:
    """List the keys: their public ids, never themselves."""
    found = as_role(ROLE, lambda engine: actions.listed(engine, limit, after))
    shown = [_shown(key) for key in found]
    show_list(shown, COLUMNS, as_json=json, nothing="There is no key: nobody can call the HTTP API.")
    say_more(page_of(shown, limit).next, "--after")


@app.command()
def revoke(
    public_id: Annotated[str, typer.Argument(metavar="KEY", help="Its public id, as `tidings keys list` shows it.")],
    json: AsJson = False,
) -> None:
    """End a key for ever; within five seconds no server takes it any more."""
    key, was_valid = as_role(ROLE, lambda engine: actions.revoke(engine, public_id, person()))
    if json:
        show_one({**_shown(key), "changed": was_valid}, as_json=True)
    else:
        say(f"Revoked: {key.public_id} ({key.name})." if was_valid else "It was revoked before.")


def _shown(key: StoredKey) -> Mapping[str, Any]:
    return {**vars(key), "scopes": scopes_text(key.scopes)}
