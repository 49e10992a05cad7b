"""What the engines call differently where tests and benches write many rows by one statement.

Moments, numbers and texts go in and come out as SQL.
"""

from tests.support.database import Database

_WORDS = {
    "postgresql": {
        "now": "statement_timestamp()",
        "now of a row": "clock_timestamp()",
        "moment": "timestamptz '{day}'",
        "later": "({moment} + ({number}) * interval '1 {unit}')",
        "start": "date_trunc('{unit}', {moment})",
        "numbers": "generate_series(1, {count}) AS {name} (seq)",
        "whole": "({number})",
        "json": "({text})::json",
        "binary": "'\\x{digits}'::bytea",
        "analyse": "ANALYZE {table}",
        "tidy": "VACUUM ANALYZE {table}",
        "leave alone": "ALTER TABLE {table} SET (autovacuum_enabled = off)",
        "look back": "BEGIN ISOLATION LEVEL REPEATABLE READ",
        "be counted": "SELECT pg_stat_force_next_flush()",
    },
    "mysql": {
        "now": "UTC_TIMESTAMP(6)",
        "now of a row": "UTC_TIMESTAMP(6)",
        "moment": "TIMESTAMP '{day} 00:00:00'",
        "later": "({moment} + INTERVAL ({number}) {unit})",
        "start": "CAST(DATE_FORMAT({moment}, '%Y-%m-%d %H:{zeroed}') AS DATETIME(6))",
        "numbers": "(SELECT CAST(seq AS SIGNED) AS seq FROM seq_1_to_{count}) {name}",
        "whole": "FLOOR({number})",
        "json": "{text}",
        "binary": "x'{digits}'",
        "analyse": "ANALYZE TABLE {table}",
        "tidy": "ANALYZE TABLE {table}",
        "leave alone": "ALTER TABLE {table} STATS_AUTO_RECALC = 0",
        "look back": "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ; START TRANSACTION WITH CONSISTENT SNAPSHOT",
        "be counted": "DO 0",
    },
}
_ZEROED = {"minute": "%i:00", "hour": "00:00"}


class Words:
    """Of the engine that a database is on."""

    def __init__(self, database: Database) -> None:
        self._words = _WORDS[database.family]
        self.now = self._words["now"]
        self.now_of_a_row = self._words["now of a row"]
        """Where the engine has a clock that goes on within a statement."""
        self.be_counted = self._words["be counted"]
        self.look_back = self._words["look back"].split("; ")

    def numbers(self, count: int, name: str = "g") -> str:
        """Rows whose column `seq` goes from 1 to so many."""
        return self._words["numbers"].format(count=count, name=name)

    def moment(self, day: str) -> str:
        return self._words["moment"].format(day=day)

    def later(self, moment: str, number: float | str, unit: str = "second") -> str:
        """So many whole units."""
        return self._words["later"].format(moment=moment, number=number, unit=unit)

    def ago(self, seconds: float | str) -> str:
        return self.later(self.now, f"ROUND(-({seconds}) * 1000000.0)", "microsecond")

    def start_of(self, unit: str, moment: str) -> str:
        """Of the minute or the hour."""
        return self._words["start"].format(unit=unit, moment=moment, zeroed=_ZEROED[unit])

    def whole(self, number: str) -> str:
        """Of a division of whole numbers, without its rest."""
        return self._words["whole"].format(number=number)

    def json(self, text: str) -> str:
        return self._words["json"].format(text=text)

    def binary(self, content: bytes) -> str:
        return self._words["binary"].format(digits=content.hex())

    def analyse(self, table: str) -> str:
        return self._words["analyse"].format(table=table)

    def tidy(self, table: str) -> str:
        """What a server does by itself after a while."""
        return self._words["tidy"].format(table=table)

    def leave_alone(self, table: str) -> str:
        """It learns nothing about this table by itself."""
        return self._words["leave alone"].format(table=table)
