"""Whatever is wrong, and whoever notices it: one shape, no stack trace, nothing secret."""

import asyncio
from collections.abc import AsyncIterator

import httpx
import pytest

from tests.api.conftest import Served, problem, serving
from tests.support.database import Database
from tidings.api import exchange, front
from tidings.model.key import Scope


async def test_every_refusal_has_the_same_shape(admin: httpx.AsyncClient, served: Served) -> None:
    problem(await admin.get("/v1/nothing"), 404, "not_found")
    problem(await admin.get("/nothing"), 404, "not_found")
    problem(await admin.get("/v1/events/"), 404, "not_found")
    assert "GET" in (await admin.put("/v1/stats")).headers["allow"]
    problem(await admin.put("/v1/stats"), 405, "method_not_allowed")
    problem(await admin.get("/v1/events/7"), 404, "not_found")
    problem(await admin.get("/v1/events/0"), 422, "invalid")
    problem(await admin.get(f"/v1/events/{2**63}"), 422, "invalid")
    problem(await admin.get("/v1/events?limit=251"), 422, "invalid")
    problem(await admin.get("/v1/events?cursor=abc"), 400, "bad_cursor")
    problem(await admin.post("/v1/subscriptions", content=b"{}"), 415, "unsupported_media_type")
    problem(
        await admin.post("/v1/events", content=b"{}", headers={"content-type": "text/plain"}),
        415,
        "unsupported_media_type",
    )
    problem(
        await admin.post("/v1/routes", content=b"{", headers={"content-type": "application/json"}), 400, "malformed"
    )
    problem(await admin.post("/v1/routes", json={"event_type": "a", "who": 1}), 422, "invalid")
    problem(await served.client().get("/v1/events"), 401, "unauthenticated")
    problem(await served.as_(Scope.PUBLISHER).get("/v1/events"), 403, "forbidden")


async def test_unknown_query_parameters_and_fields_are_named(admin: httpx.AsyncClient) -> None:
    said = problem(await admin.get("/v1/sagas?state=Pending&limit=1"), 422, "invalid")
    assert [one["pointer"] for one in said["errors"]] == ["?state"]
    said = problem(await admin.get("/v1/stats?x=1"), 422, "invalid")
    assert [one["pointer"] for one in said["errors"]] == ["?x"]
    problem(await admin.post("/v1/events?x=1", json={"event_type": "a", "payload": 1}), 422, "invalid")
    body = {"event_type": "a", "callback_url": "https://a.example/", "verified": True}
    said = problem(await admin.post("/v1/subscriptions", json=body), 422, "invalid")
    assert [one["pointer"] for one in said["errors"]] == ["/verified"]


@pytest.mark.parametrize("path", ["/v1/events", "/v1/routes"])
async def test_a_body_that_does_not_come_is_refused_after_a_while(
    engine: Database, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(front, "SECONDS", 0.2)
    monkeypatch.setattr(exchange, "SECONDS_TO_DROP", 0.1)
    async with serving(engine) as served:
        host = served.url.removeprefix("http://")
        reader, writer = await asyncio.open_connection(*host.split(":"))
        head = f"POST {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {served.keys[Scope.ADMIN]}\r\n"
        writer.write(f"{head}Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{{".encode())
        said = await asyncio.wait_for(reader.read(), 10)
    assert said.startswith(b"HTTP/1.1 408 ")
    assert b'"code":"too_slow"' in said.replace(b" ", b"")
    writer.close()


@pytest.mark.parametrize("path", ["/v1/events", "/v1/routes"])
async def test_a_body_that_is_too_large_is_refused_before_it_is_read(served: Served, path: str) -> None:
    admin = served.as_(Scope.ADMIN)
    json = {"content-type": "application/json"}
    problem(await admin.post(path, content=b"x" * (9 * 1024 * 1024), headers=json), 413, "too_large")

    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(9 * 16):
            yield b"x" * 64 * 1024

    problem(await admin.post(path, content=pieces(), headers=json), 413, "too_large")
    # The connection that was cut off takes nobody else with it.
    assert (await admin.get("/v1/stats")).status_code == 200


@pytest.mark.parametrize(
    "authorization",
    ["", "Bearer", "Basic abc", "Bearer wrong", "Bearer tid_aaaaaaaaaaaa_" + "a" * 49, "Bearer \xe9"],
)
async def test_without_a_valid_key_nobody_gets_in(served: Served, authorization: str) -> None:
    answer = await served.client().get("/v1/stats", headers={b"authorization": authorization.encode("latin-1")})
    problem(answer, 401, "unauthenticated")
    assert answer.headers["www-authenticate"].startswith("Bearer")


async def test_what_is_no_http_is_refused_in_the_same_form(served: Served) -> None:
    host, _, port = served.url.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(b"nonsense\r\n\r\n")
    answer = await reader.read()
    assert b" 400 Bad Request\r\ncontent-type: application/problem+json\r\n" in answer
    assert b'"code": "malformed"' in answer
    writer.close()
    await writer.wait_closed()


async def test_request_ids_are_echoed_if_sane_and_made_otherwise(admin: httpx.AsyncClient) -> None:
    async def sent(id: str) -> str:
        return (await admin.get("/v1/stats", headers={"x-request-id": id})).headers["x-request-id"]

    assert await sent("abc-1.2:3") == "abc-1.2:3"
    made = [await sent("a b"), await sent("x" * 129)]
    assert all(id.startswith("req-") for id in made)
    assert made[0] != made[1]


async def test_every_answer_has_the_security_headers_and_says_nothing_of_the_server(admin: httpx.AsyncClient) -> None:
    for path in ("/v1/stats", "/v1/nothing", "/healthz", "/docs"):
        headers = (await admin.get(path)).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert "server" not in headers


async def test_a_lost_database_is_503_and_the_way_back_needs_no_restart(served: Served) -> None:
    admin = served.as_(Scope.ADMIN)
    assert (await admin.get("/readyz")).json() == {"ready": True, "reasons": []}
    await admin.get("/v1/stats")
    served.database.server.kill()
    try:
        problem(await admin.get("/v1/stats"), 503, "unavailable")
        said = await admin.get("/readyz")
        assert said.status_code == 503
        assert said.json()["reasons"]
        assert (await admin.get("/healthz")).status_code == 200
        publish = await admin.post("/v1/events", json={"event_type": "a", "payload": 1})
        problem(publish, 503, "unavailable")
    finally:
        await asyncio.to_thread(served.database.server.start)
    assert (await admin.get("/v1/stats")).status_code == 200
    assert (await admin.post("/v1/events", json={"event_type": "a", "payload": 1})).status_code == 202
