"""A server without room is told from a statement that is wrong: no row is to blame, and later it will go well."""

import asyncpg
import pytest
from asyncmy.errors import OperationalError

from tidings.api.problems import KINDS, of_error
from tidings.db import mysql, postgresql
from tidings.errors import RoomMissing, StatementDenied, TidingsError

NO_ROOM = {
    "PostgreSQL": lambda: postgresql._in_our_words(asyncpg.DiskFullError("could not extend file")),
    "a full table": lambda: mysql._in_our_words(OperationalError(1114, "The table 'events' is full")),
    "a full disk": lambda: mysql._in_our_words(OperationalError(1021, "Disk full (/tmp/x); waiting for someone")),
    "a file": lambda: mysql._in_our_words(
        OperationalError(1026, "Error writing file 'x' (errno: 28 \"No space left on device\")")
    ),
    "an engine": lambda: mysql._in_our_words(
        OperationalError(1030, 'Got error 28 "No space left on device" from storage engine InnoDB')
    ),
}


@pytest.mark.parametrize("case", NO_ROOM)
def test_what_has_no_room_is_not_the_fault_of_a_row_and_503_to_the_caller(case: str) -> None:
    """What happens then is tried with real disks, in tests/machines/test_full_disk.py."""
    error: TidingsError = NO_ROOM[case]()
    assert isinstance(error, RoomMissing)
    assert isinstance(error, StatementDenied)
    refused = of_error(error)
    assert KINDS[refused.code].status == 503
    assert "no room" in refused.detail
    assert "not stored" in refused.detail
    assert refused.headers["Retry-After"]
