"""The map as text: for the terminal, and for docs/reference/flow.md."""

from tidings.flow import DELETE, EXECUTE, INSERT, ROLES, SELECT, UPDATE, Permission, Role

_WRITING = {INSERT: "adds", UPDATE: "changes", DELETE: "removes", EXECUTE: "calls"}
_IN_EVERY_ROLE = {"installation", "config_version", "schema_migrations", "audit_log"}


def reads(role: Role) -> list[str]:
    return [str(permission) for permission in role.may if permission.verb == SELECT and not _common(permission)]


def writes(role: Role) -> list[str]:
    return [f"{_WRITING[p.verb]} {p}" for p in role.may if p.verb in _WRITING and not _common(p)]


def _common(permission: Permission) -> bool:
    return permission.table in _IN_EVERY_ROLE and permission.verb != UPDATE


def flow_reference() -> str:
    """docs/reference/flow.md, whole."""
    sections = [_section(role) for role in ROLES]
    return "\n".join([_HEAD, _diagram(), "", "## The roles", "", *sections])


_HEAD = """# The flow: who reads and writes what

<!-- Made from src/tidings/flow.py by `make docs`; change it there. -->

Each role is one process type, one database role and one package of code. Roles never call each other: they meet in
the database. Every role may also read `installation`, `config_version` and `schema_migrations`; every role that acts
for people may add to `audit_log`, and nobody may change it. `schema_owner` migrates and runs nothing else.
"""


def _diagram() -> str:
    lines = ["```mermaid", "flowchart LR"]
    for role in ROLES:
        if not role.process:
            continue
        lines.append(f"  {role.name}([{role.process}])")
        lines += [f"  {table} -.-> {role.name}" for table in _tables(role, SELECT)]
        lines += [f"  {role.name} ==> {table}" for table in _tables(role, INSERT, UPDATE, DELETE)]
    return "\n".join([*lines, "```"])


def _tables(role: Role, *verbs: str) -> list[str]:
    return list(dict.fromkeys(p.table for p in role.may if p.verb in verbs and p.table not in _IN_EVERY_ROLE))


def _section(role: Role) -> str:
    process = f"`tidings run {role.process}`: " if role.process else ""
    lines = [f"### {role.name}", "", f"{process}{role.does}.", ""]
    lines += [f"- reads {text}" for text in reads(role)]
    lines += [f"- {text}" for text in writes(role)]
    return "\n".join([*lines, ""])
