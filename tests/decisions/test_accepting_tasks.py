"""What is accepted as a task, and what is refused with a word about what to do."""

import datetime
from typing import Any

import pytest

from tidings.decisions.submitting import accept_task
from tidings.errors import TaskRefused
from tidings.model.event import EventLimits
from tidings.model.submission import AcceptedTask

UTC = datetime.UTC
NOON = datetime.datetime(2026, 1, 31, 12, 30, 0, 5, UTC)


def accepted(biz_type: Any = "EMAIL_SEND", biz_key: Any = "order-1", payload: Any = "{}", **more: Any) -> AcceptedTask:
    return accept_task(biz_type, biz_key, payload, **{"correlation_id": "c", "limits": EventLimits(), **more})


def refused(field: str, *given: Any, **more: Any) -> str:
    with pytest.raises(TaskRefused) as error:
        accepted(*given, **more)
    assert error.value.field == field
    assert error.value.what.startswith(field)
    return str(error.value)


def test_a_task_is_accepted_as_it_was_given() -> None:
    text = ' { "b" :1,\r\n\t"a": [ ] } \n'
    assert accepted("EMAIL_SEND", "訂單 1", text.encode(), priority=0, max_retries=0, run_at=NOON) == AcceptedTask(
        "EMAIL_SEND", "訂單 1", text, 0, "2026-01-31 12:30:00.000005", 0, "c"
    )
    assert accepted(payload={"to": "ü"}).payload == '{"to":"ü"}'
    assert (accepted().priority, accepted().max_retries, accepted().run_at) == (10, 3, None)


@pytest.mark.parametrize("biz_type", ["", "a b", "é", "x" * 51, "a\n", None, 7])
def test_a_type_is_1_to_50_visible_ascii_characters(biz_type: Any) -> None:
    refused("biz_type", biz_type)
    assert accepted("x" * 50).biz_type == "x" * 50


@pytest.mark.parametrize("biz_key", ["", "x" * 101, "a\nb", "a\x00", "\ud800", None, 7])
def test_a_key_is_1_to_100_characters_that_can_be_seen(biz_key: Any) -> None:
    refused("biz_key", "A", biz_key)
    assert accepted(biz_key="ü" * 100).biz_key == "ü" * 100
    assert accepted(biz_key=" a ").biz_key == " a "


@pytest.mark.parametrize("payload", ["", "{", "NaN", b"\xff", '"\\ud800"', "[" * 31 + "]" * 31, object(), float("nan")])
def test_payloads_are_refused_as_those_of_events(payload: Any) -> None:
    refused("payload", payload=payload)


def test_a_payload_has_a_size() -> None:
    assert "11 bytes" in refused("payload", payload="1" * 11, limits=EventLimits(max_payload=10))


@pytest.mark.parametrize("number", [-1, 128, 1.0, "1", True, None])
def test_a_priority_fits_in_a_tinyint(number: Any) -> None:
    """Seed 003: "priority TINYINT"; on MySQL that ends at 127."""
    refused("priority", priority=number)
    assert accepted(priority=127).priority == 127


@pytest.mark.parametrize("number", [-1, 1001, 1.5, "3", False, None])
def test_retries_are_a_number_up_to_a_thousand(number: Any) -> None:
    refused("max_retries", max_retries=number)
    assert accepted(max_retries=1000).max_retries == 1000


def test_a_time_is_kept_in_utc_to_the_microsecond() -> None:
    east = datetime.timezone(datetime.timedelta(hours=5, minutes=30))
    assert accepted(run_at=NOON.astimezone(east)).run_at == "2026-01-31 12:30:00.000005"
    assert accepted(run_at=datetime.datetime(9998, 12, 31, tzinfo=UTC)).run_at == "9998-12-31 00:00:00.000000"


@pytest.mark.parametrize(
    "run_at",
    [
        "2026-01-31",
        1,
        datetime.date(2026, 1, 31),
        datetime.time(12, tzinfo=UTC),
        NOON.replace(tzinfo=None),
        NOON.replace(year=1969),
        datetime.datetime.max.replace(tzinfo=UTC),
        datetime.datetime.max.replace(tzinfo=datetime.timezone(-datetime.timedelta(hours=5))),
        datetime.datetime.min.replace(tzinfo=datetime.timezone(datetime.timedelta(hours=5))),
    ],
)
def test_a_time_that_could_mean_another_one_elsewhere_is_refused(run_at: Any) -> None:
    refused("run_at", run_at=run_at)


def test_a_correlation_id_is_visible_ascii() -> None:
    refused("correlation_id", correlation_id="a b")
    refused("correlation_id", correlation_id="")
