"""The document that describes the API: complete, and true."""

import html
import re
from collections.abc import Iterator
from typing import Any

from tests.api.conftest import Served
from tidings.api.examples import refers

PATHS = [
    "/v1/events",
    "/v1/events/{id}",
    "/v1/subscriptions",
    "/v1/subscriptions/{id}",
    "/v1/subscriptions/{id}/verify",
    "/v1/subscriptions/{id}/rotate-secret",
    "/v1/subscriptions/{id}/test",
    "/v1/subscriptions/{id}/pause",
    "/v1/subscriptions/{id}/resume",
    "/v1/subscriptions/{id}/replay",
    "/v1/sagas",
    "/v1/sagas/{id}",
    "/v1/sagas/{id}/resend",
    "/v1/dead-letters",
    "/v1/dead-letters/{id}",
    "/v1/dead-letters/{id}/requeue",
    "/v1/dead-letters/requeue",
    "/v1/routes",
    "/v1/routes/{id}",
    "/v1/route-dead-letters",
    "/v1/route-dead-letters/{id}/replay",
    "/v1/routers",
    "/v1/gates",
    "/v1/gates/{name}",
    "/v1/tasks",
    "/v1/tasks/{id}",
    "/v1/tasks/{id}/retry",
    "/v1/tasks/{id}/cancel",
    "/v1/why/{kind}/{id}",
    "/v1/stats",
    "/healthz",
    "/readyz",
    "/metrics",
]


async def test_the_document_has_every_path_and_describes_every_part(served: Served) -> None:
    document = (await served.client().get("/openapi.json")).json()
    assert set(PATHS) <= set(document["paths"])
    for path, verb, operation in operations(document):
        assert operation["summary"], path
        assert operation["description"], path
        assert all(one.get("description") for one in operation.get("parameters", ())), f"{verb} {path}"
        wrong = [code for code in operation["responses"] if code[0] in "45" and path != "/readyz"]
        for code in wrong:
            assert "application/problem+json" in operation["responses"][code]["content"], f"{verb} {path} {code}"
    for name, schema in document["components"]["schemas"].items():
        for field, described in schema.get("properties", {}).items():
            assert described.get("description"), f"{name}.{field}"
    assert "ValidationError" not in document["components"]["schemas"]


async def test_every_reference_leads_somewhere(served: Served) -> None:
    document = (await served.client().get("/openapi.json")).json()
    for reference in references(document):
        name = reference.removeprefix("#/components/schemas/")
        assert name in document["components"]["schemas"], reference


async def test_every_field_and_parameter_has_an_example_of_its_kind(served: Served) -> None:
    document = (await served.client().get("/openapi.json")).json()
    for name, schema in document["components"]["schemas"].items():
        for field, described in schema.get("properties", {}).items():
            if "enum" in described or refers(described):
                continue
            (example, *_) = described["examples"]
            assert fits(example, described), f"{name}.{field}: {example!r}"
    for path, _verb, operation in operations(document):
        for one in operation.get("parameters", ()):
            if one["in"] == "path" and "$ref" not in one["schema"] and "enum" not in one["schema"]:
                assert one.get("examples") or one["schema"].get("examples"), f"{path} {one['name']}"


async def test_names_are_for_people(served: Served) -> None:
    document = (await served.client().get("/openapi.json")).json()
    assert [name for name in document["components"]["schemas"] if "__" in name or "tidings" in name] == []


async def test_there_is_a_page_to_read_it_without_scripts_or_strangers(served: Served) -> None:
    client = served.client()
    document = (await client.get("/openapi.json")).json()
    answer = await client.get("/docs")
    assert answer.status_code == 200
    assert answer.headers["content-security-policy"].startswith("default-src 'none'; style-src 'self'")
    assert "<script" not in answer.text
    assert "style=" not in answer.text
    asked_for = re.findall(r"""(?:src|href)=["']([^"'#]*)""", answer.text)
    assert set(asked_for) - {""} == {"/docs/style.css", "/openapi.json"}
    assert (await client.get("/docs/style.css")).headers["content-type"] == "text/css; charset=utf-8"
    anchors = set(re.findall(r'id="([^"]+)"', answer.text))
    assert set(re.findall(r'href="#([^"]+)"', answer.text)) <= anchors
    for path, _verb, operation in operations(document):
        assert path in answer.text
        assert html.escape(operation["summary"], quote=False) in answer.text.replace("&#39;", "'")


KINDS: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
}


def fits(example: Any, described: dict[str, Any]) -> bool:
    types = [one["type"] for one in (described, *described.get("anyOf", ())) if "type" in one and one["type"] != "null"]
    return not types or any(isinstance(example, KINDS[one]) for one in types)


def operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, verbs in document["paths"].items():
        for verb, operation in verbs.items():
            yield path, verb, operation


def references(value: Any) -> Iterator[str]:
    match value:
        case {"$ref": str(found)}:
            yield found
        case dict():
            for one in value.values():
                yield from references(one)
        case list():
            for one in value:
                yield from references(one)
