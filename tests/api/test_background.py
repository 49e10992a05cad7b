"""Work that goes on after its answer: when it fails, the log says what is true of it."""

import asyncio

import pytest

from tests.support.waiting import eventually
from tidings.api.background import Background
from tidings.errors import TidingsError
from tidings.telemetry.bus import listening
from tidings.telemetry.notices import Notice, WorkStopped


@pytest.mark.parametrize(
    ("error", "said", "has_traceback"),
    [
        (TidingsError("The server is away."), "The server is away.", False),
        (KeyError("a bug"), "KeyError: 'a bug'", True),
    ],
)
async def test_work_that_fails_is_told_once_and_not_as_if_it_were_tried_again(
    error: Exception, said: str, has_traceback: bool
) -> None:
    times = 0
    told: list[Notice] = []

    async def work() -> None:
        nonlocal times
        times += 1
        raise error

    background = Background()
    with listening(told.append):
        background.begin("requeue 7", work())
        await eventually(lambda: told, what="the notice")
        await background.stop()
    (notice,) = told
    assert isinstance(notice, WorkStopped)
    assert (notice.work, notice.error, bool(notice.traceback)) == ("requeue 7", said, has_traceback)
    assert times == 1


async def test_work_that_is_broken_off_with_its_server_is_no_failure() -> None:
    told: list[Notice] = []
    begun, background = asyncio.Event(), Background()

    async def work() -> None:
        begun.set()
        await asyncio.Event().wait()

    with listening(told.append):
        background.begin("requeue 7", work())
        await begun.wait()
        await asyncio.wait_for(background.stop(), 5)
    assert told == []
