"""`migrate` and `doctor`: making the database, looking at its health."""

import asyncio
from enum import StrEnum
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from tidings.cli.context import installation
from tidings.cli.gates import OPENING
from tidings.cli.listing import AsJson
from tidings.cli.output import out, say, show_json
from tidings.cli.progress import migration_progress
from tidings.db.accounts import ALL_ROLES
from tidings.db.address import read_address
from tidings.db.migrations.printing import printed_migration, printed_roles
from tidings.decisions.diagnosing import Finding, Health, is_well
from tidings.doctor import examine
from tidings.flow import OWNER
from tidings.wiring import Installation

MARKS = {Health.RIGHT: Text("✔", "green"), Health.DOUBTFUL: Text("!", "yellow"), Health.WRONG: Text("✘", "red")}


class Roles(StrEnum):
    CREATE = "create"
    PRINT = "print"
    NONE = "none"


def add_to(app: typer.Typer) -> None:
    app.command()(migrate)
    app.command()(doctor)


def migrate(
    check: Annotated[bool, typer.Option("--check", help="Change nothing; exit 1 if a migration is missing.")] = False,
    print_: Annotated[bool, typer.Option("--print", help="Change nothing; print the SQL, for a DBA.")] = False,
    roles: Annotated[
        Roles, typer.Option(help="Make the server's roles and logins, print the SQL that does, or leave them alone.")
    ] = Roles.CREATE,
) -> None:
    """Bring the database to the state this version needs: tables, guards, roles, rights. Safe to repeat."""
    with installation(must_exist=check) as found:
        if check:
            asyncio.run(check_migrations(found))
        elif print_:
            asyncio.run(print_sql(found, roles))
        else:
            asyncio.run(run_migrations(found, roles))


async def check_migrations(found: Installation) -> None:
    async with found.migrator() as migrator:
        missing = await migrator.missing_steps()
    for version, step in missing:
        out.print(f"missing: {version:04} {step}", markup=False)
    say(f"{len(missing)} steps are missing." if missing else "The schema is up to date.")
    if missing:
        raise typer.Exit(1)


async def print_sql(found: Installation, roles: Roles) -> None:
    async with found.migrator() as migrator:
        dialect = migrator.dialect
    out.out(printed_migration(found.names, dialect, with_roles=roles is not Roles.NONE), highlight=False)


async def run_migrations(found: Installation, roles: Roles, *, about_gates: bool = True) -> bool:
    """Also used by `demo` and `up`, where the roles are always made. True if there was no schema before."""
    async with found.migrator() as migrator:
        missing = await migrator.missing_steps()
        passwords = found.new_passwords() if roles is Roles.CREATE else None
        with migration_progress(len(missing)):
            made = await migrator.migrate(passwords)
        say(f"{len(missing)} migration steps applied." if missing else "The schema was up to date.")
        if roles is Roles.PRINT:
            out.out(printed_roles(found.names, migrator.dialect), highlight=False)
    if found.embedded is None and made and passwords:
        show_logins(found, {login: passwords[login] for login in made})
    if missing and about_gates:
        say("The gates are closed: nothing is routed until somebody makes a route and opens them:")
        say(f"  tidings routes add --type '*'\n  {OPENING}")
    return any(version == 1 for version, _ in missing)


def show_logins(found: Installation, passwords: dict[str, str]) -> None:
    say("New logins. Their passwords are shown only now; give each process its own:")
    address = read_address(found.access(OWNER).url)
    for role in ALL_ROLES:
        login = found.names.login(role)
        if login in passwords:
            url = address.url_for(login, passwords[login], found.names.schema)
            out.out(f"TIDINGS_DATABASE_URL_{role.upper()}={url}", highlight=False)


def doctor(json: AsJson = False) -> None:
    """Say what is right and wrong with this installation, with the remedy; exit 1 when something is wrong."""
    with installation(must_exist=True) as found:
        findings = asyncio.run(collect(found))
    show_findings(findings, json)
    if not is_well(findings):
        raise typer.Exit(1)


async def collect(found: Installation) -> list[Finding]:
    return [finding async for finding in examine(found)]


def show_findings(findings: list[Finding], json: bool) -> None:
    if json:
        show_json([vars(finding) for finding in findings])
        return
    table = Table(box=None, show_header=False, pad_edge=False)
    for finding in findings:
        remedy = (f"\n→ {finding.remedy}", "dim") if finding.remedy else ""
        table.add_row(MARKS[finding.health], Text(finding.subject), Text.assemble(finding.says, remedy))
    out.print(table)
