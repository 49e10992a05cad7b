"""`/docs`: the OpenAPI document as one page to read. Made here, without scripts, and without asking another server."""

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from fastapi import FastAPI, Response
from jinja2 import Environment
from markupsafe import Markup, escape

_CODE = re.compile(r"`([^`]+)`")
_SCHEMAS = "#/components/schemas/"


def add_to(app: FastAPI) -> None:
    """Two more paths, which are no part of the document."""
    page = cache(lambda: _page(app.openapi()))

    @app.get("/docs", include_in_schema=False)
    async def docs() -> Response:
        return Response(page(), media_type="text/html; charset=utf-8")

    @app.get("/docs/style.css", include_in_schema=False)
    async def style() -> Response:
        return Response(_file("reference.css"), media_type="text/css; charset=utf-8")


def _page(document: Mapping[str, Any]) -> str:
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {"words": _words, "kind": _kind, "json": _json}
    return environment.from_string(_file("reference.html")).render(
        document=document, operations=_by_tag(document), schemas=document["components"]["schemas"]
    )


def _file(name: str) -> str:
    return files(__package__).joinpath(name).read_text("utf-8")


def _by_tag(document: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for operation in _operations(document):
        found.setdefault(operation["tags"][0], []).append(operation)
    return found


def _operations(document: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for path, verbs in document["paths"].items():
        for verb, operation in verbs.items():
            name = re.sub(r"\W+", "-", f"{verb}-{path}").strip("-")
            yield {
                **operation,
                "path": path,
                "verb": verb.upper(),
                "name": name,
                "given": _content(operation.get("requestBody", {})),
                "answers": {status: (said, _content(said)) for status, said in operation["responses"].items()},
                "example": _example(verb, path, operation, document["components"]["schemas"]),
            }


def _content(part: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema of a body, of whichever media type."""
    return next((one.get("schema", {}) for one in part.get("content", {}).values()), {})


def _example(verb: str, path: str, operation: Mapping[str, Any], schemas: Mapping[str, Any]) -> str:
    """How to call it from a shell."""
    for one in operation.get("parameters", ()):
        if one["in"] == "path":
            path = path.replace(f"{{{one['name']}}}", str(_first_example(one)))
    words = ["curl", *([] if verb == "get" else ["-X", verb.upper()]), f"http://127.0.0.1:8420{path}"]
    if operation.get("security"):
        words += ["-H", '"Authorization: Bearer $KEY"']
    if operation.get("requestBody", {}).get("required"):
        words += ["--json", f"'{json.dumps(_body_example(operation['requestBody'], schemas))}'"]
    return " ".join(words)


def _first_example(parameter: Mapping[str, Any]) -> Any:
    examples = parameter.get("examples") or parameter.get("schema", {}).get("examples") or [1]
    return next(iter(examples.values()))["value"] if isinstance(examples, dict) else examples[0]


def _body_example(body: Mapping[str, Any], schemas: Mapping[str, Any]) -> Any:
    """One that was given, or what must be there."""
    content = next(iter(body["content"].values()))
    for one in content.get("examples", {}).values():
        return one["value"]
    schema = schemas.get(content["schema"].get("$ref", "").removeprefix(_SCHEMAS), {})
    fields = schema.get("properties", {})
    return {name: fields[name].get("examples", [None])[0] for name in schema.get("required", ())}


def _kind(schema: Mapping[str, Any]) -> Markup:
    """A type in a few words, with links to those that are described below."""
    if "$ref" in schema:
        name = schema["$ref"].removeprefix(_SCHEMAS)
        return Markup('<a href="#schema-{0}">{0}</a>').format(name)
    if "enum" in schema:
        return Markup(" or ").join(Markup("<code>{}</code>").format(one) for one in schema["enum"])
    for word in ("anyOf", "oneOf", "allOf"):
        if word in schema:
            return Markup(" or ").join(map(_kind, schema[word]))
    if schema.get("type") == "array":
        return Markup("list of {}").format(_kind(schema.get("items", {})))
    if schema.get("type") == "object" and isinstance(schema.get("additionalProperties"), Mapping):
        return Markup("map of {}").format(_kind(schema["additionalProperties"]))
    return escape(schema.get("format") or schema.get("type") or "any JSON")


def _words(text: str) -> Markup:
    """Prose, with what stands between backticks as code."""
    paragraphs = [Markup(_CODE.sub(r"<code>\1</code>", str(escape(part)))) for part in text.split("\n\n")]
    return Markup("").join(Markup("<p>{}</p>").format(part) for part in paragraphs)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
