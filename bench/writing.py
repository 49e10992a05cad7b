"""The statements by which several benches write what the roles write: the shared ones, and those of one bench."""

from collections.abc import Mapping
from functools import cache

from tidings.db.dialect import Dialect
from tidings.db.statements import Statement, load_statements

TOKEN = 4_611_686_018_427_387_905
"""Of every lease, as large as real ones are."""


@cache
def statements_of(package: str, dialect: Dialect) -> Mapping[str, Statement]:
    """By their short names."""
    return {**load_statements(__package__, dialect), **load_statements(package, dialect)}
