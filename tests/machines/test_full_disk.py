"""The disk under the database is full for a while."""

from pathlib import Path

import pytest

from tests.machines.apart import run_apart

pytestmark = [pytest.mark.slow, pytest.mark.alone, pytest.mark.timeout(240)]


@pytest.mark.quick_on("postgresql")
def test_without_room_events_are_refused_clearly_and_with_room_again_everything_drains(
    own_kind: str, tmp_path: Path
) -> None:
    run_apart("disk", own_kind, "small", tmp_path, 200)


@pytest.mark.full
@pytest.mark.timeout(600)
def test_nothing_is_lost_when_the_disk_is_full_under_a_long_load(own_kind: str, tmp_path: Path) -> None:
    run_apart("disk", own_kind, "big", tmp_path, 500)


@pytest.mark.full
@pytest.mark.one_engine("postgresql", reason="MariaDB's redo log has its whole size from the beginning")
def test_nothing_is_lost_when_there_is_no_room_for_what_is_written_ahead(own_kind: str, tmp_path: Path) -> None:
    """PostgreSQL gives up then; whoever runs it begins it again when there is room."""
    run_apart("disk-of-the-log", own_kind, "big", tmp_path, 500)
