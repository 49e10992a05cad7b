"""The clients know all of the API, and what it answers is what their types say."""

import datetime
import inspect
import re
import types
from typing import Any, get_args, get_origin

import msgspec
import pytest

from tidings.api.app import application
from tidings.remote import answers
from tidings.remote.calling import Call
from tidings.remote.clients import Listing, Surface
from tidings.remote.operations import delivering, publishing, routing, subscribing, working

ARGUMENTS = {
    "id": 1,
    "name": "routing",
    "kind": "event",
    "events": [{"event_type": "a", "payload": 1}],
    "since": datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC),
}
METHODS = {name: one for name, one in vars(Surface).items() if not name.startswith("_")}
FUNCTIONS = {
    name: one
    for part in (delivering, publishing, routing, subscribing, working)
    for name, one in vars(part).items()
    if isinstance(one, types.FunctionType) and one.__module__ == part.__name__ and not name.startswith("_")
}

KINDS = [
    one
    for one in vars(answers).values()
    if isinstance(one, type) and issubclass(one, answers.Answer) and one not in (answers.Answer, answers.Page)
]


def called(name: str) -> Call[Any]:
    """The call of an operation, with something for each argument that it must have."""
    wanted = [
        one.name
        for one in inspect.signature(FUNCTIONS[name]).parameters.values()
        if one.default is one.empty and one.kind is not one.VAR_KEYWORD
    ]
    call: Call[Any] = FUNCTIONS[name](**{one: ARGUMENTS.get(one, "1") for one in wanted})
    return call


def operation_of(call: Call[Any]) -> tuple[str, str]:
    for path, verbs in application().openapi()["paths"].items():
        pattern = re.sub(r"\{\w+\}", "[^/]+", path)
        if re.fullmatch(pattern, call.path) and call.method.lower() in verbs and "{" not in call.path:
            return call.method.lower(), path
    raise AssertionError(f"the API has no {call.method} {call.path}")


def schema_of(name: str) -> dict[str, Any]:
    found: dict[str, Any] = application().openapi()["components"]["schemas"][name]
    return found


def structs(answer: Any) -> list[Any]:
    """The types that an answer is made of, without pages and lists."""
    if get_origin(answer) is not None:
        return [one for part in get_args(answer) for one in structs(part)]
    return [answer] if isinstance(answer, type) and issubclass(answer, msgspec.Struct) else []


def test_every_operation_has_a_method_and_every_method_an_operation() -> None:
    assert set(METHODS) == set(FUNCTIONS)
    theirs = {
        (verb, path)
        for path, verbs in application().openapi()["paths"].items()
        for verb in verbs
        if path.startswith("/v1/")
    }
    # Opening and closing a gate, one event and many, are each one operation.
    assert {operation_of(called(name)) for name in FUNCTIONS} == theirs


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_lists_are_walked_and_everything_is_explained(name: str) -> None:
    assert FUNCTIONS[name].__doc__
    is_page = get_origin(called(name).answer) is answers.Page
    assert isinstance(METHODS[name], Listing) == is_page


@pytest.mark.parametrize("kind", KINDS)
def test_a_type_has_the_fields_of_its_schema(kind: type[answers.Answer]) -> None:
    fields = {one.encode_name for one in msgspec.structs.fields(kind)}
    assert fields == set(schema_of(kind.__name__)["properties"])


def test_an_operation_answers_what_the_document_says() -> None:
    for name in FUNCTIONS:
        call = called(name)
        verb, path = operation_of(call)
        responses = application().openapi()["paths"][path][verb]["responses"]
        said = str(next(one for status, one in responses.items() if status.startswith("2")))
        named = [one.__name__ for one in structs(call.answer) if one is not answers.Page]
        assert named, name
        assert all(one in said for one in named), name


def test_every_filter_of_a_list_can_be_given() -> None:
    for name, method in METHODS.items():
        if isinstance(method, Listing):
            verb, path = operation_of(called(name))
            parameters = application().openapi()["paths"][path][verb].get("parameters", ())
            theirs = {one["name"] for one in parameters if one["in"] == "query"} - {"limit", "cursor"}
            ours = set(inspect.signature(FUNCTIONS[name]).parameters) - {"page_size"}
            assert ours == theirs, name
