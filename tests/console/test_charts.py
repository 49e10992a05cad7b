"""Charts are numbers first: what stands where is decided without a browser."""

import datetime

import pytest

from tidings.console.charts import Stage, ceiling, flow_picture, spans, stacked
from tidings.console.saying import duration
from tidings.console.showing import json_text, number, tone

NOW = datetime.datetime(2026, 5, 4, 13, 37, 20, tzinfo=datetime.UTC)


def at(minute: int, hour: int = 13) -> datetime.datetime:
    return datetime.datetime(2026, 5, 4, hour, minute, tzinfo=datetime.UTC)


@pytest.mark.parametrize(("most", "top"), [(0, 1), (1, 1), (3, 5), (5, 5), (6, 10), (199, 200), (201, 500), (9e6, 1e7)])
def test_an_axis_ends_at_a_round_number(most: float, top: float) -> None:
    assert ceiling(most) == top


def test_minutes_without_anything_are_shown_too_and_the_last_is_the_one_under_way() -> None:
    found = spans({at(37): (1, 0), at(35): (2, 3), at(10): (9, 9)}, NOW, 5, 1, 2)
    assert [(one.began_at, one.counts) for one in found] == [
        (at(33), (0, 0)),
        (at(34), (0, 0)),
        (at(35), (2, 3)),
        (at(36), (0, 0)),
        (at(37), (1, 0)),
    ]


def test_longer_spans_add_their_minutes_up() -> None:
    found = spans({at(30): (1,), at(37): (2,), at(29): (4,), at(15): (8,)}, NOW, 45, 15, 1)
    assert [(one.began_at.minute, one.counts) for one in found] == [(0, (0,)), (15, (12,)), (30, (3,))]


def test_bars_stand_on_each_other_and_end_at_the_top() -> None:
    (low, high) = stacked([(3, 2), (0, 0)], width=100, height=50, gap=0)
    assert [(bar.x, bar.y, bar.width, bar.height) for bar in low] == [(0, 20, 50, 30), (50, 50, 50, 0)]
    assert (high[0].y, high[0].height) == (0, 20)


def test_a_chart_of_nothing_is_flat() -> None:
    assert stacked([], 100, 50) == []
    (bars,) = stacked([(0,)] * 3, 100, 50)
    assert [bar.height for bar in bars] == [0, 0, 0]


@pytest.mark.parametrize("is_tall", [False, True])
def test_the_boxes_of_the_flow_do_not_touch(is_tall: bool) -> None:
    names = ("events", "router", "sagas", "jobs", "endpoints", "tasks", "dead")
    picture = flow_picture({name: Stage(name, "1", "", "quiet", "/") for name in names}, is_tall=is_tall)
    assert [box.stage.name for box in picture.boxes] == [*names]
    places = [(box.x, box.y) for box in picture.boxes]
    for one in places:
        assert 0 <= one[0] <= picture.width - picture.box_width
        assert 0 <= one[1] <= picture.height - picture.box_height
        for other in places:
            apart = max(abs(one[0] - other[0]) - picture.box_width, abs(one[1] - other[1]) - picture.box_height)
            assert one == other or apart >= 10


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        *[(0, "0 ms"), (0.085, "85 ms"), (3.24, "3.2 s"), (59, "59 s"), (61, "1 min")],
        *[(3600, "1 h"), (7500, "2 h 5 min"), (86_400, "1 d"), (273_600, "3 d 4 h")],
    ],
)
def test_a_duration_is_said_by_its_biggest_parts(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_a_duration_is_said_in_the_language_of_the_page() -> None:
    assert [duration(one, "zh-Hant") for one in (0.5, 3.2, 7500)] == ["500 毫秒", "3.2 秒", "2 小時 5 分"]


def test_numbers_are_grouped_and_statuses_have_a_tone() -> None:
    assert number(1234567) == "1\u202f234\u202f567"
    assert [tone(one) for one in ("Completed", "DeadLettered", "PendingRetry", "InProgress", "whatever")] == [
        "good",
        "bad",
        "warn",
        "busy",
        "quiet",
    ]


def test_what_is_no_json_is_shown_as_it_is() -> None:
    assert json_text('{"a":1}') == '{\n  "a": 1\n}'
    assert json_text("{broken") == "{broken"
    assert json_text(b"\xff\x00") == "\ufffd\x00"
    assert json_text("[" * 100_000) == "[" * 100_000
