"""Seed 002, phase 1: the tables and keys it names, apart from what else is in the written list."""

import pytest

from tidings.tables import Index, tables_of

SAGAS, JOBS = "webhook_delivery_sagas", "webhook_delivery_jobs"


def index_on(table: str, *columns: str) -> Index | None:
    return next((index for index in tables_of("mysql")[table].indexes if index.columns == columns), None)


def test_every_table_of_phase_1_is_in_the_written_list() -> None:
    """Phase 1: "Create all tables exactly as specified"; that the servers have them is compared elsewhere."""
    named = {"events", "subscriptions", SAGAS, JOBS, "dead_letters"}
    assert all(named <= set(tables_of(family)) for family in ("postgresql", "mysql"))


@pytest.mark.parametrize(
    ("table", "columns"),
    [
        ("events", ("created_at",)),
        ("events", ("event_type",)),
        (SAGAS, ("status", "next_attempt_at")),
        (JOBS, ("status", "lease_until")),
    ],
)
def test_every_index_of_phase_1_is_in_the_written_list(table: str, columns: tuple[str, ...]) -> None:
    """With these columns on both engines: none is replaced by others on MySQL."""
    index = index_on(table, *columns)
    assert index is not None
    assert not index.mysql_columns


@pytest.mark.parametrize(
    ("table", "columns"),
    [
        # Ruling 1: the generation joins the key.
        (SAGAS, ("event_id", "subscription_id", "generation")),
        (JOBS, ("saga_id", "attempt_at")),
        ("events", ("event_domain", "external_id")),
    ],
)
def test_every_unique_key_of_phases_1_and_2_is_in_the_written_list(table: str, columns: tuple[str, ...]) -> None:
    index = index_on(table, *columns)
    assert index is not None
    assert index.unique
