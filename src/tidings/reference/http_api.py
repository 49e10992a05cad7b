"""docs/reference/http-api.md, from the same OpenAPI document that the server shows at `/openapi.json`."""

from collections.abc import Iterator, Mapping
from typing import Any

from tidings.api.app import application
from tidings.reference.writing import code, head, one_line, table

_SAYS = """Served by `tidings run api`, which is part of `tidings up`. The server itself shows the same, with every
field and examples, at `/docs`, and for programs at `/openapi.json`. `tidings.Client` has a method for each
operation ([guide](../guide/python-client.md)). Codes of problems: [error
codes](error-codes.md#problems-of-the-http-api).
"""
_REFERENCE = "#/components/schemas/"


def http_api_reference() -> str:
    """The whole page."""
    document: Mapping[str, Any] = application().openapi()
    chapters: dict[str, list[str]] = {}
    for path, verbs in document["paths"].items():
        for verb, operation in verbs.items():
            chapters.setdefault(operation["tags"][0], []).extend(_operation(verb.upper(), path, operation))
    lines = [head("HTTP API", "the OpenAPI document of src/tidings/api", _SAYS), document["info"]["description"], ""]
    for tag, written in chapters.items():
        lines += [f"## {tag}", "", *written]
    return "\n".join(lines)


def _operation(verb: str, path: str, operation: Mapping[str, Any]) -> Iterator[str]:
    yield f"### {verb} {path}\n"
    summary = one_line(operation["summary"])
    ended = summary if summary.endswith("?") else f"{summary}."
    yield f"{ended} {one_line(operation.get('description'))}".strip() + "\n"
    if scope := operation.get("x-tidings-scope"):
        bound = ", not bound to one domain" if operation["x-tidings-all-domains"] else ""
        yield f"Scope: `{scope}`{bound}.\n"
    if given := operation.get("requestBody"):
        yield f"Body: {_kind(_schema(given))}.\n"
    if rows := [_parameter(one) for one in operation.get("parameters", ())]:
        yield table(("parameter", "in", "type", "meaning"), rows)
    yield table(("status", "body", "meaning"), (_answer(*one) for one in operation["responses"].items()))


def _parameter(one: Mapping[str, Any]) -> tuple[str, str, str, str]:
    needed = ", required" if one.get("required") else ""
    return code(one["name"]), f"{one['in']}{needed}", _kind(one["schema"]), one_line(one.get("description"))


def _answer(status: str, said: Mapping[str, Any]) -> tuple[str, str, str]:
    return status, _kind(_schema(said)), one_line(said["description"])


def _schema(part: Mapping[str, Any]) -> Mapping[str, Any]:
    return next((one.get("schema", {}) for one in part.get("content", {}).values()), {})


def _kind(schema: Mapping[str, Any]) -> str:
    """A type in a few words."""
    if "$ref" in schema:
        return code(schema["$ref"].removeprefix(_REFERENCE))
    if "enum" in schema:
        return " or ".join(map(code, schema["enum"]))
    for word in ("anyOf", "oneOf", "allOf"):
        if word in schema:
            return " or ".join(_kind(one) for one in schema[word] if one.get("type") != "null")
    if schema.get("type") == "array":
        return f"list of {_kind(schema.get('items', {}))}"
    return str(schema.get("format") or schema.get("type") or "")
