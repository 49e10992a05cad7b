"""`@task(…)`: what is a handler, what is none, and what its payload becomes."""

import datetime
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec
import pydantic
import pytest

import tidings
from tests.tasks.handlers_of_tests import Mail, send
from tidings.decisions.retrying import Backoff
from tidings.errors import HandlerInvalid, PayloadUnfit
from tidings.tasks import Handlers, registered
from tidings.tasks.handlers import Terms

DEFAULTS = Terms(100, 180, 600, Backoff(60, 3600, 0.1))


@dataclass
class Point:
    x: int
    y: int = 0


class Row(msgspec.Struct):
    x: int
    y: int = 0


class Model(pydantic.BaseModel):
    x: int
    y: int = pydantic.Field(default=0, ge=0)


def handler_of(function: Callable[..., Any], **terms: Any) -> Any:
    handlers = Handlers()
    handlers.task("A", **terms)(function)
    return handlers["A"]


def test_the_names_of_an_application_are_in_the_front_window() -> None:
    assert tidings.task == registered.task
    assert issubclass(tidings.Retry, Exception)
    assert issubclass(tidings.Fail, Exception)
    assert tidings.TaskContext.__module__ == "tidings.tasks.signals"


def test_a_decorated_function_stays_what_it_is() -> None:
    async def handle(payload: object) -> None: ...

    assert Handlers().task("A")(handle) is handle
    assert handler_of(handle).is_async
    assert not handler_of(handle).takes_context


def test_a_second_argument_is_the_context() -> None:
    assert handler_of(lambda payload, context: None).takes_context
    assert not handler_of(lambda payload, times=3: None).takes_context


def test_without_an_annotation_the_payload_is_plain_json() -> None:
    read = handler_of(lambda payload: None).read_payload
    assert read('{"a": [1, 2.5, null, "ü"]}') == {"a": [1, 2.5, None, "ü"]}
    assert read("null") is None


@pytest.mark.parametrize("kind", [Point, Row, Model])
def test_an_annotated_payload_is_made_into_its_type(kind: type[Any]) -> None:
    def handle(payload: Any) -> None: ...

    handle.__annotations__["payload"] = kind
    read = handler_of(handle).read_payload
    assert read('{"x": 3}') == kind(x=3, y=0)
    with pytest.raises(PayloadUnfit, match=rf"does not fit {kind.__name__}"):
        read('{"x": "three"}')
    with pytest.raises(PayloadUnfit):
        read("[]")


def test_a_model_of_pydantic_keeps_its_own_rules() -> None:
    def handle(payload: Model) -> None: ...

    with pytest.raises(PayloadUnfit, match="greater than or equal to 0"):
        handler_of(handle).read_payload('{"x": 1, "y": -1}')


def test_annotations_may_be_texts() -> None:
    assert handler_of(send).read_payload('{"to": "a"}') == Mail("a")


def test_a_payload_that_is_no_json_does_not_fit() -> None:
    with pytest.raises(PayloadUnfit, match="does not fit"):
        handler_of(lambda payload: None).read_payload("{")


def no_argument() -> None: ...


def three_arguments(payload: object, context: object, more: object) -> None: ...


def needs_a_keyword(payload: object, *, more: object) -> None: ...


def unknown_type(payload: object) -> None: ...


unknown_type.__annotations__["payload"] = "Nowhere"


def unreadable_type(payload: Point | Row) -> None: ...


@pytest.mark.parametrize("function", [no_argument, three_arguments, needs_a_keyword, unknown_type, unreadable_type])
def test_what_is_no_handler_is_refused_when_it_is_registered(function: Callable[..., Any]) -> None:
    with pytest.raises(HandlerInvalid) as refused:
        handler_of(function)
    assert refused.value.remedy


@pytest.mark.parametrize(
    "terms",
    [
        {"concurrency": 0},
        {"timeout": 0},
        {"timeout": -1},
        {"visibility_timeout": float("nan")},
        {"base_delay": datetime.timedelta(0)},
        {"max_delay": float("inf")},
    ],
)
def test_terms_that_make_no_sense_are_refused(terms: dict[str, Any]) -> None:
    with pytest.raises(HandlerInvalid):
        handler_of(lambda payload: None, **terms)


@pytest.mark.parametrize("biz_type", ["", "x" * 51, "a\0b"])
def test_a_type_that_no_task_could_have_is_refused(biz_type: str) -> None:
    with pytest.raises(HandlerInvalid):
        Handlers().task(biz_type)(lambda payload: None)


def test_the_same_type_twice_is_refused_with_both_names() -> None:
    handlers = Handlers()
    handlers.task("EMAIL_SEND")(send)
    with pytest.raises(HandlerInvalid, match=r"two handlers: .*send and"):
        handlers.task("EMAIL_SEND")(lambda payload: None)


def test_a_visibility_timeout_below_three_handler_timeouts_is_refused() -> None:
    """Ruling 8."""
    with pytest.raises(HandlerInvalid, match="less than 3 × its handler timeout"):
        handler_of(lambda payload: None, timeout=10, visibility_timeout=29)
    assert handler_of(lambda payload: None, timeout=10, visibility_timeout=30).terms(DEFAULTS).visibility_timeout == 30


def test_the_same_holds_where_one_of_the_two_comes_from_the_settings() -> None:
    with pytest.raises(HandlerInvalid):
        handler_of(lambda payload: None, timeout=201).terms(DEFAULTS)
    with pytest.raises(HandlerInvalid):
        handler_of(lambda payload: None, visibility_timeout=60).terms(DEFAULTS)
    assert handler_of(lambda payload: None, timeout=200).terms(DEFAULTS).timeout == 200


def test_what_a_handler_does_not_say_is_as_the_settings_say() -> None:
    assert handler_of(lambda payload: None).terms(DEFAULTS) == DEFAULTS
    own = handler_of(lambda payload: None, concurrency=2, base_delay=1, max_delay=datetime.timedelta(minutes=1))
    assert own.terms(DEFAULTS) == Terms(2, 180, 600, Backoff(1, 60, 0.1))


@pytest.mark.parametrize("after", [-1, float("nan"), float("inf"), 1e12, datetime.timedelta(days=-1)])
def test_a_retry_after_no_such_time_is_refused_where_it_is_raised(after: Any) -> None:
    with pytest.raises(ValueError, match="after must be"):
        tidings.Retry(after=after)


def test_a_retry_may_be_told_in_seconds_or_as_a_span_of_time() -> None:
    assert tidings.Retry(after=datetime.timedelta(minutes=2)).after == 120
    assert tidings.Retry("busy", after=0).after == 0
    assert tidings.Retry().after is None
