"""Migrations, accounts and grants as one script, for a person who runs them by hand."""

from tidings.db.accounts import ALL_ROLES, accounts, bare_schema_text, definer_text, schema_texts
from tidings.db.dialect import Dialect
from tidings.db.migrations.files import ledger_text, migrations, step_text, words
from tidings.db.names import Names
from tidings.db.rights import grant_texts, wanted_rights
from tidings.flow import OWNER


def printed_migration(names: Names, dialect: Dialect, *, with_roles: bool) -> str:
    """Everything that `migrate` would do on an empty server."""
    made_first = [*_account_texts(names, dialect), *_as_owner(names, dialect)]
    texts = made_first if with_roles else [bare_schema_text(names, dialect)]
    texts += [_enter_text(names, dialect), ledger_text(dialect), _record_text(0, "begun")]
    known = words(names, dialect, definer_text(names) if with_roles else "CURRENT_USER")
    for migration in migrations(dialect.family):
        for step in migration.steps:
            texts += [step_text(step, known), _record_text(migration.version, step.name)]
    return _script([*texts, *(_grants(names, dialect) if with_roles else [])], dialect)


def printed_roles(names: Names, dialect: Dialect) -> str:
    """Accounts and grants alone, for a schema that is there; passwords are to be chosen."""
    return _script([*_account_texts(names, dialect), *_grants(names, dialect)], dialect)


def _account_texts(names: Names, dialect: Dialect) -> list[str]:
    passwords = {names.login(role): "CHOOSE-A-PASSWORD" for role in ALL_ROLES}
    made = accounts(names, dialect, passwords)
    texts = [text for account in made for text in (account.make, *account.after) if text]
    return texts + schema_texts(names, dialect)


def _as_owner(names: Names, dialect: Dialect) -> list[str]:
    return [f'SET ROLE "{names.group(OWNER)}"'] if dialect.family == "postgresql" else []


def _grants(names: Names, dialect: Dialect) -> list[str]:
    return grant_texts(wanted_rights(names, dialect.family), (), names.schema, dialect)


def _enter_text(names: Names, dialect: Dialect) -> str:
    return f'SET search_path = "{names.schema}"' if dialect.family == "postgresql" else f"USE `{names.schema}`"


def _record_text(version: int, step: str) -> str:
    return f"INSERT INTO schema_migrations (version, step) VALUES ({version}, '{step}')"


def _script(texts: list[str], dialect: Dialect) -> str:
    if dialect.family == "postgresql":
        return "".join(f"{text};\n\n" for text in texts)
    return "DELIMITER //\n" + "".join(f"{text}//\n\n" for text in texts) + "DELIMITER ;\n"
