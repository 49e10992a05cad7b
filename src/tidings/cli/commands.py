"""Every command: where its module is, what the list says of it, and examples. A module is loaded when it is called."""

from collections.abc import Collection
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

BEGIN, LOOK, ACT, SET_UP, KEEP = "Begin", "Look", "Act", "Set up", "Keep it running"


@dataclass(frozen=True)
class Command:
    module: str
    panel: str
    says: str
    examples: tuple[str, ...] = ()

    def loaded(self) -> Any:
        return import_module(f"tidings.cli.{self.module}")


COMMANDS = {
    "up": Command(
        "up", BEGIN, "Start everything there is.", ("tidings up", "tidings up --port 9000 --data-dir ./here")
    ),
    "demo": Command(
        "demo", BEGIN, "See it work: throwaway database, four receivers.", ("tidings demo", "tidings demo --events 200")
    ),
    "bench": Command(
        "bench", BEGIN, "How fast it is on this machine.", ("tidings bench", "tidings bench --events 20000 --json")
    ),
    "listen": Command(
        "listen",
        BEGIN,
        "Receive events here and print them.",
        ("tidings listen --secret whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "tidings listen --port 9001 --answer 503"),
    ),
    "publish": Command(
        "publishing",
        BEGIN,
        "Publish one event.",
        (
            """tidings publish order.paid '{"order": 7}' --external-id order-7""",
            "tidings publish order.paid @order.json --domain shop",
            "echo '{}' | tidings publish order.paid -",
        ),
    ),
    "events": Command(
        "events",
        LOOK,
        "The log of events.",
        (
            "tidings events list --type order.paid --limit 20",
            "tidings events list --since 2h",
            "tidings events show 12",
        ),
    ),
    "sagas": Command(
        "sagas",
        LOOK,
        "Deliveries: each event to each of its subscriptions.",
        ("tidings sagas list --status PendingRetry", "tidings sagas show 34", "tidings sagas resend 34"),
    ),
    "why": Command(
        "why",
        LOOK,
        "Why is it not there yet?",
        ("tidings why event:12", "tidings why saga:34", "tidings why task:9 --json"),
    ),
    "reconcile": Command(
        "reconcile",
        LOOK,
        "Do both sides of the ledger agree?",
        ("tidings reconcile", "tidings reconcile --since 2026-01-31 --until 2026-02-01 --json"),
    ),
    "flow": Command("flow", LOOK, "Who reads and writes what.", ("tidings flow", "tidings flow --json")),
    "dead-letters": Command(
        "dead_letters",
        ACT,
        "What could not be delivered, and its way back.",
        (
            "tidings dead-letters list --subscription 5",
            "tidings dead-letters requeue 3 4",
            "tidings dead-letters requeue --subscription 5 --since 3d --rate 50 --yes",
        ),
    ),
    "route-dead-letters": Command(
        "route_dead_letters",
        ACT,
        "What could not be routed, and why.",
        ("tidings route-dead-letters list", "tidings route-dead-letters replay 2"),
    ),
    "tasks": Command(
        "tasks",
        ACT,
        "Internal work, done once for each business key.",
        (
            """tidings tasks submit EMAIL_SEND order-7 '{"to": "a@example.com"}'""",
            "tidings tasks list --status 4",
            "tidings tasks retry 9",
        ),
    ),
    "subscriptions": Command(
        "subscriptions",
        SET_UP,
        "Who gets which events.",
        (
            "tidings subscriptions add --type 'order.*' --url https://example.com/in",
            "tidings subscriptions verify 5",
            "tidings subscriptions pause 5",
            "tidings subscriptions replay 5 --since 2d",
        ),
    ),
    "routes": Command(
        "routes",
        SET_UP,
        "Which events go where.",
        (
            "tidings routes add --type '*'",
            "tidings routes add --type 'order.*' --target task --task EMAIL_SEND",
            "tidings routes preview --event 12",
        ),
    ),
    "gates": Command(
        "gates",
        SET_UP,
        "Whether anything is routed at all.",
        ("tidings gates list", "tidings gates open --all", "tidings gates close routing --reason maintenance"),
    ),
    "routers": Command(
        "routers",
        SET_UP,
        "Where each router is in the log.",
        ("tidings routers list", "tidings routers show default"),
    ),
    "keys": Command(
        "keys",
        SET_UP,
        "Who may call the HTTP API.",
        (
            "tidings keys add --name shop --scope publisher --domain shop --expires 90d",
            "tidings keys list",
            "tidings keys revoke 8f3kQ2LmZx01",
        ),
    ),
    "run": Command(
        "running",
        KEEP,
        "Run roles until Ctrl-C.",
        (
            "tidings run all",
            "tidings run router orchestrator",
            "tidings run worker --processes 4",
            "tidings run task-worker --app myapp.tasks",
        ),
    ),
    "migrate": Command(
        "database",
        KEEP,
        "Bring the database to the state this version needs.",
        ("tidings migrate", "tidings migrate --check", "tidings migrate --print > for-the-dba.sql"),
    ),
    "doctor": Command(
        "database", KEEP, "What is right and wrong here, and its remedy.", ("tidings doctor", "tidings doctor --json")
    ),
    "url": Command(
        "url", KEEP, "The database URL of a role.", ('psql "$(tidings url observer)"', "tidings url --hold")
    ),
}


class LazyGroup(TyperGroup):
    """Knows every command by name and line; loads only the one that is called."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        for name, command in COMMANDS.items():
            self.add_command(TyperCommand(name, short_help=command.says, rich_help_panel=command.panel))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, found, rest = super().resolve_command(ctx, args)
        return name, load(name, self.rich_markup_mode) if found and name else None, rest


def load(name: str, markup: Any = None) -> Any:
    """The command itself, or the group of commands, with its examples."""
    command = COMMANDS[name]
    app = typer.Typer(rich_markup_mode=markup)
    command.loaded().add_to(app)
    # Not alone, so that it stays one of a group, and has its name.
    app.callback()(lambda: None)
    made: Any = typer.main.get_command(app)
    found = made.commands[name]
    found.epilog = "\b\nExamples:\n" + "\n".join(f"  {example}" for example in command.examples)
    return found


def own_flags(name: str) -> Collection[str]:
    """Flags that a command means for itself though a setting has the same name."""
    flags: Collection[str] = getattr(COMMANDS[name].loaded(), "OWN_FLAGS", ()) if name in COMMANDS else ()
    return flags
