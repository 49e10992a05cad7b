"""Who may do what: every operation of the OpenAPI document, tried with a key of every scope, and with none."""

from typing import Any

import httpx

from tests.api.conftest import Served, problem
from tests.support.waiting import eventually
from tidings.decisions.keys import public_id_of
from tidings.model.key import COVERS, Scope
from tidings.roles.keys import actions

ARGUMENTS = {"id": "1", "name": "routing", "kind": "event"}
VERBS = ("get", "put", "post", "patch", "delete")


async def operations(served: Served) -> list[tuple[str, str, dict[str, Any]]]:
    document = (await served.client().get("/openapi.json")).json()
    return [
        (verb, path, operation)
        for path, verbs in document["paths"].items()
        for verb, operation in verbs.items()
        if verb in VERBS
    ]


async def ask(client: httpx.AsyncClient, verb: str, path: str) -> httpx.Response:
    for name, value in ARGUMENTS.items():
        path = path.replace(f"{{{name}}}", value)
    return await client.request(verb, path, json=None if verb == "get" else {})


async def test_each_scope_may_do_what_the_document_says_and_nothing_else(served: Served) -> None:
    clients = {scope: served.as_(scope) for scope in Scope}
    nobody = served.client()
    tried = 0
    for verb, path, operation in await operations(served):
        if not path.startswith("/v1/"):
            assert "x-tidings-scope" not in operation
            continue
        wanted = Scope(operation["x-tidings-scope"])
        problem(await ask(nobody, verb, path), 401, "unauthenticated")
        for scope, client in clients.items():
            answer = await ask(client, verb, path)
            allowed = wanted in COVERS[scope]
            assert (answer.status_code != 403) == allowed, f"{scope}: {verb} {path}: {answer.text}"
            assert answer.status_code != 401
            assert answer.status_code < 500, f"{scope}: {verb} {path}: {answer.text}"
            tried += 1
    assert tried > 4 * 30


async def test_a_key_bound_to_a_domain_does_nothing_that_concerns_all_domains(served: Served) -> None:
    bound = served.client(await served.key("viewer", "publisher", domain="shop"))
    for verb, path, operation in await operations(served):
        if operation.get("x-tidings-scope") not in ("viewer", "publisher"):
            continue
        answer = await ask(bound, verb, path)
        assert (answer.status_code == 403) == operation["x-tidings-all-domains"], f"{verb} {path}: {answer.text}"


async def test_everything_that_writes_needs_more_than_a_viewer(served: Served) -> None:
    for verb, path, operation in await operations(served):
        if verb != "get":
            assert operation["x-tidings-scope"] != "viewer", path


async def test_a_revoked_key_is_refused_within_five_seconds(served: Served) -> None:
    key = await served.key("viewer")
    client = served.client(key)
    assert (await client.get("/v1/stats")).status_code == 200
    await actions.revoke(await served.database.open("key_admin"), public_id_of(key), "test")

    async def is_refused() -> bool:
        return (await client.get("/v1/stats")).status_code == 401

    await eventually(is_refused, timeout=5)
