"""docs/reference/flow.md, from the map."""

from tidings.flow import COMMON, DELETE, INSERT, ROLES, SELECT, UPDATE, Role
from tidings.reference.writing import head

_SAYS = """
Each role is one process type, one database role and one package of code. Roles never call each other: they meet in
the database. Every role may also read `installation`, `config_version` and `schema_migrations`; every role that acts
for people may add to `audit_log`, and nobody may change it. `schema_owner` migrates and runs nothing else.
"""


def flow_reference() -> str:
    """The whole page."""
    title = head("The flow: who reads and writes what", "src/tidings/flow.py", _SAYS)
    return "\n".join([title, _diagram(), "", "## The roles", "", *map(_section, ROLES)])


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
    return list(dict.fromkeys(p.table for p in role.may if p.verb in verbs and p not in COMMON))


def _section(role: Role) -> str:
    process = f"`tidings run {role.process}`: " if role.process else ""
    lines = [f"### {role.name}", "", f"{process}{role.does}.", ""]
    lines += [f"- reads {text}" for text in role.reads()]
    lines += [f"- {text}" for text in role.writes()]
    return "\n".join([*lines, ""])
