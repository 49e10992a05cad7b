"""`flow`: the map, printed."""

import typer
from rich.table import Table

from tidings.cli.listing import AsJson
from tidings.cli.output import out, show_json
from tidings.flow import ROLES, Role


def add_to(app: typer.Typer) -> None:
    app.command()(flow)


def flow(json: AsJson = False) -> None:
    """Show every role, what it reads and what it writes."""
    if json:
        show_json([role_json(role) for role in ROLES])
    else:
        show_flow()


def role_json(role: Role) -> dict[str, object]:
    return {
        "role": role.name,
        "process": role.process or None,
        "does": role.does,
        "may": [{"verb": p.verb, "on": p.table, "columns": p.columns or None, "but": p.but or None} for p in role.may],
    }


def show_flow() -> None:
    table = Table(show_lines=True, expand=True)
    for heading, ratio in (("role", 2), ("reads", 3), ("writes", 4)):
        table.add_column(heading, ratio=ratio, overflow="fold")
    for role in ROLES:
        process = f"\n[dim]run {role.process}[/]" if role.process else ""
        table.add_row(
            f"[bold]{role.name}[/]{process}\n{role.does}", "\n".join(role.reads()), "\n".join(role.writes()) or "–"
        )
    out.print(table)
