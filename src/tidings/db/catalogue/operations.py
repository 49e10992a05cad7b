"""Reads a server's own catalogues and puts what stands there into the words of `tidings.tables` and of the map."""

import re
from collections.abc import Iterable

from tidings.db.catalogue.spelling import column_line, index_line
from tidings.db.operations import Operations
from tidings.db.rights import PUBLIC, Right
from tidings.db.session import Row

_GRANT = re.compile(
    r"GRANT (?P<verbs>.+) ON (?:PROCEDURE )?`(?P<schema>[^`]+)`\.`?(?P<subject>[^` ]+)`? TO `?(?P<to>[^` ]+)`?"
)
# As MariaDB calls whom PostgreSQL calls public.
_EVERYBODY = "PUBLIC"
_VERB = re.compile(r"([A-Z][A-Z ]*[A-Z])(?: \(([^)]*)\))?")


class CatalogueOperations(Operations):
    async def schema_lines(self, schema: str) -> dict[str, str]:
        """Each thing of the schema by name, with one line that describes it."""
        lines: dict[str, str] = {}
        for row in await self._rows("stored_tables", schema=schema):
            lines[f"table {row['table_name']}"] = row["storage"]
        for row in await self._rows("stored_columns", schema=schema):
            lines[f"column {row['table_name']}.{row['column_name']}"] = column_line(row)
        for row in await self._rows("stored_indexes", schema=schema):
            name = "primary key" if row["is_primary"] else row["index_name"]
            lines[f"index {row['table_name']}.{name}"] = index_line(row)
        for row in await self._rows("stored_checks", schema=schema):
            lines[f"check {row['table_name']}.{row['check_name']}"] = "enforced"
        for row in await self._rows("stored_triggers", schema=schema):
            lines[f"guard {row['table_name']}.{row['trigger_name']}"] = "fires"
        return lines

    async def granted_rights(self, schema: str, grantee: str) -> frozenset[Right]:
        rows = await self._rows("granted_rights", **self._of("granted_rights", schema=schema, grantee=grantee))
        return frozenset(right for row in rows for right in _read_rights(row, schema, grantee))

    def _of(self, name: str, **arguments: str) -> dict[str, str]:
        return {key: value for key, value in arguments.items() if key in self._statements[name].arguments}


def _read_rights(row: Row, schema: str, grantee: str) -> Iterable[Right]:
    if "verb" in row:
        return [Right(grantee, row["verb"], row["subject"], row["column_name"])]
    (text,) = row.values()
    return _read_grant_line(text, schema, grantee)


def _read_grant_line(text: str, schema: str, grantee: str) -> Iterable[Right]:
    line = _GRANT.match(text)
    if line is None or line["to"] != (_EVERYBODY if grantee == PUBLIC else grantee):
        return []
    database, subject = line["schema"], line["subject"]
    if database != schema:
        # In a grant on a whole database an underscore may be escaped; only so spelled can it be taken back.
        if subject != "*" or database.replace(r"\_", "_") != schema:
            return []
        subject = f"{database}.*"
    return [
        Right(grantee, verb, subject, column.strip("` "))
        for verb, columns in _VERB.findall(line["verbs"])
        for column in (columns.split(",") if columns else [""])
    ]
