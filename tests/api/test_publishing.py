"""`POST /v1/events`: stored byte for byte, once, all or none; each answer belongs to its own request."""

import asyncio
import json
from typing import Any

import httpx
import pytest

from tests.api.conftest import Served, problem
from tests.support.database import Database
from tests.support.locks import somebody_waits
from tests.support.sessions import connect
from tidings.model.key import Scope


@pytest.fixture
def publisher(served: Served) -> httpx.AsyncClient:
    return served.as_(Scope.PUBLISHER)


async def post(client: httpx.AsyncClient, body: str | bytes, **headers: str) -> httpx.Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return await client.post("/v1/events", content=body, headers={"content-type": "application/json", **named})


async def stored(engine: Database) -> list[dict[str, Any]]:
    return [dict(row) for row in await engine.sql("SELECT * FROM events ORDER BY id", "observer")]


async def test_an_event_is_stored_and_its_payload_is_the_text_of_the_request(
    publisher: httpx.AsyncClient, engine: Database
) -> None:
    payload = '{ "b":1,\n "a": [1.0, 1e400, "\\u00e9\\ud83d\\ude00 é"], "b":  2 }'
    body = f'{{"event_type": "order.paid", "payload":  {payload} , "external_id": "x", "correlation_id": "c"}}'
    answer = await post(publisher, body)
    assert answer.status_code == 202
    (row,) = await stored(engine)
    assert answer.json() == {"id": row["id"], "duplicate": False, "payload_differs": False}
    assert row["payload"] == payload
    wanted = {"event_type": "order.paid", "external_id": "x", "correlation_id": "c", "event_domain": "default"}
    assert {name: row[name] for name in wanted} == wanted


async def test_a_list_is_answered_with_a_list_in_its_order(publisher: httpx.AsyncClient, engine: Database) -> None:
    body = [{"event_type": f"t{n}", "payload": n, "external_id": f"x{n % 4}"} for n in range(6)]
    answers = (await post(publisher, json.dumps(body))).json()
    rows = {row["id"]: row for row in await stored(engine)}
    assert [rows[one["id"]]["external_id"] for one in answers] == [one["external_id"] for one in body]
    assert [one["duplicate"] for one in answers] == [False] * 4 + [True] * 2
    assert [one["payload_differs"] for one in answers] == [False] * 4 + [True] * 2
    assert len(rows) == 4


async def test_one_bad_event_of_a_list_is_named_and_nothing_is_stored(
    publisher: httpx.AsyncClient, engine: Database
) -> None:
    body = '[{"event_type": "a", "payload": 1}, {"event_type": "a b", "payload": 1}, {"event_type": "*", "payload": 1}]'
    said = problem(await post(publisher, body), 422, "invalid")
    assert [one["pointer"] for one in said["errors"]] == ["/1/event_type", "/2/event_type"]
    assert await stored(engine) == []


@pytest.mark.parametrize(
    ("body", "status", "pointer"),
    [
        ("", 400, None),
        ("{", 400, None),
        ("nul", 400, None),
        ('{"event_type": "a"}', 422, "/payload"),
        ('{"payload": 1}', 422, "/event_type"),
        ('{"event_type": 5, "payload": 1}', 422, "/event_type"),
        ('{"event_type": "a", "payload": 1, "id": 7}', 422, "/id"),
        ('[{"event_type": "a", "payload": 1}, {"event_type": "a", "payload": 1, "x": 7}]', 422, "/1/x"),
        ('{"event_type": "a", "payload": NaN}', 400, None),
        ('{"event_type": "a", "payload": 01}', 400, None),
        ('{"event_type": "a", "payload": "\\ud800"}', 400, None),
        ('{"event_type": "a\\ud800", "payload": 1}', 400, None),
        ('{"event_type": "a", "payload": ' + "[" * 40 + "]" * 40 + "}", 422, "/payload"),
        ('{"event_type": "a", "payload": ' + "[" * 100_000 + "]" * 100_000 + "}", 422, None),
        ('{"event_type": "a", "payload": "' + "x" * 300_000 + '"}', 422, "/payload"),
        ('{"event_type": "a", "payload": 1, "external_id": ""}', 422, "/external_id"),
        ("[]", 422, ""),
        ("5", 422, None),
        ('["a"]', 422, "/0"),
    ],
    ids=range(19),
)
async def test_what_can_not_be_stored_is_refused_and_leaves_no_trace(
    publisher: httpx.AsyncClient, engine: Database, body: str, status: int, pointer: str | None
) -> None:
    said = problem(await post(publisher, body), status, "malformed" if status == 400 else "invalid")
    if pointer is not None:
        assert [one["pointer"] for one in said["errors"]] == [pointer]
    assert await stored(engine) == []


async def test_more_than_a_hundred_at_once_are_refused(publisher: httpx.AsyncClient, engine: Database) -> None:
    event = {"event_type": "a", "payload": 1}
    problem(await post(publisher, json.dumps([event] * 101)), 422, "invalid")
    assert len((await post(publisher, json.dumps([event] * 100))).json()) == 100
    assert len(await stored(engine)) == 100


async def test_an_idempotency_key_stands_for_a_missing_external_id(
    publisher: httpx.AsyncClient, engine: Database
) -> None:
    one = '{"event_type": "a", "payload": 1}'
    first = (await post(publisher, one, idempotency_key='"k-1"')).json()
    again = (await post(publisher, one, idempotency_key="k-1")).json()
    other = (await post(publisher, '{"event_type": "a", "payload": 2}', idempotency_key="k-1")).json()
    assert first == {"id": first["id"], "duplicate": False, "payload_differs": False}
    assert again == {"id": first["id"], "duplicate": True, "payload_differs": False}
    assert other == {"id": first["id"], "duplicate": True, "payload_differs": True}
    own = '{"event_type": "a", "payload": 1, "external_id": "mine"}'
    assert not (await post(publisher, own, idempotency_key="k-1")).json()["duplicate"]
    assert [row["external_id"] for row in await stored(engine)] == ["k-1", "mine"]


async def test_in_a_list_an_idempotency_key_has_the_place_behind_it(
    publisher: httpx.AsyncClient, engine: Database
) -> None:
    body = '[{"event_type": "a", "payload": 1}, {"event_type": "a", "payload": 2, "external_id": "own"}]'
    first = (await post(publisher, body, idempotency_key="k")).json()
    again = (await post(publisher, body, idempotency_key="k")).json()
    assert [one["id"] for one in again] == [one["id"] for one in first]
    assert all(one["duplicate"] for one in again)
    assert [row["external_id"] for row in await stored(engine)] == ["k:0", "own"]


@pytest.mark.parametrize("key", ["", '""', "x" * 201, "a\tb"])
async def test_an_idempotency_key_that_can_not_be_one_is_refused(publisher: httpx.AsyncClient, key: str) -> None:
    problem(await post(publisher, '{"event_type": "a", "payload": 1}', idempotency_key=key), 400, "malformed")


async def test_sixty_four_publishers_at_once_get_each_their_own_answer(
    publisher: httpx.AsyncClient, engine: Database
) -> None:
    async def one(n: int) -> tuple[int, dict[str, Any]]:
        body = json.dumps({"event_type": "a", "payload": n, "external_id": f"x{n}"})
        return n, (await post(publisher, body)).json()

    answers = [answer for _ in range(3) for answer in await asyncio.gather(*map(one, range(64)))]
    rows = {row["id"]: row for row in await stored(engine)}
    assert len(rows) == 64
    assert all(rows[said["id"]]["external_id"] == f"x{n}" for n, said in answers)
    assert sum(not said["duplicate"] for _, said in answers) == 64


async def test_a_key_bound_to_a_domain_publishes_there_and_nowhere_else(served: Served, engine: Database) -> None:
    bound = served.client(await served.key("publisher", domain="shop"))
    assert (await post(bound, '{"event_type": "a", "payload": 1}')).status_code == 202
    assert (await post(bound, '{"event_type": "a", "payload": 1, "event_domain": "shop"}')).status_code == 202
    said = problem(await post(bound, '{"event_type": "a", "payload": 1, "event_domain": "bank"}'), 403, "forbidden")
    assert "shop" in said["detail"]
    assert {row["event_domain"] for row in await stored(engine)} == {"shop"}


@pytest.mark.slow
async def test_an_open_transaction_with_the_same_external_id_holds_up_nobody_else(
    publisher: httpx.AsyncClient, engine: Database
) -> None:
    other = await connect(engine.url("event_ingest_writer"))
    await other.run("BEGIN")
    await other.run("INSERT INTO events (event_type, payload, external_id) VALUES ('a', '1', 'held')")
    held = asyncio.create_task(post(publisher, '{"event_type": "a", "payload": 1, "external_id": "held"}'))
    await somebody_waits(engine)

    async def one(n: int) -> int:
        body = {"event_type": "a", "payload": n, **({"external_id": f"x{n}"} if n % 2 else {})}
        return (await post(publisher, json.dumps(body))).status_code

    assert await asyncio.wait_for(asyncio.gather(*map(one, range(40))), 15) == [202] * 40
    assert not held.done()
    await other.run("COMMIT")
    assert (await held).json()["duplicate"]
    await other.close()


async def test_what_is_answered_at_once_has_the_same_head_as_any_other_answer(served: Served) -> None:
    """Head and body are one write unless the connection is to be closed; nobody can see which way was taken."""

    async def head_of(**headers: str) -> dict[str, str]:
        answer = await post(served.as_(Scope.PUBLISHER), '{"event_type": "a", "payload": 1}', **headers)
        return {name: value for name, value in answer.headers.items() if name not in ("date", "content-length")}

    at_once = await head_of(x_request_id="r")
    assert at_once | {"connection": "close"} == await head_of(x_request_id="r", connection="close")
    assert at_once["x-request-id"] == "r"


async def test_an_answer_comes_in_one_piece(served: Served) -> None:
    host, _, port = served.url.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    body = b'{"event_type": "a", "payload": 1}'
    head = f"POST /v1/events HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {served.keys[Scope.PUBLISHER]}\r\n"
    whole = f"{head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
    for _ in range(20):
        writer.write(whole)
        answer = await reader.read(64 * 1024)
        assert answer.startswith(b"HTTP/1.1 202 Accepted\r\n")
        assert answer.endswith(b"}")
    writer.write(whole * 3)  # the next is read when the one before has its answer
    answers = b"".join([await reader.readuntil(b"}") for _ in range(3)])
    assert answers.count(b"HTTP/1.1 202 Accepted\r\n") == 3
    writer.close()
    await writer.wait_closed()
