"""`tidings.Client` and `tidings.AsyncClient`, against the real API."""

import asyncio
import datetime
from collections.abc import Iterator

import pytest

import tidings
from tests.api.conftest import Served
from tests.remote.conftest import Lossy
from tests.roles.dead_letters.scene import Scene
from tests.support.database import Database
from tests.support.ports import ReservedPort
from tidings.remote import errors


async def test_what_was_published_can_be_read_back(client: tidings.AsyncClient) -> None:
    done = await client.publish("order.paid", {"order": 7}, external_id="order-7", correlation_id="c-7")
    again = await client.publish("order.paid", {"order": 8}, external_id="order-7")
    assert (again.id, again.duplicate, again.payload_differs) == (done.id, True, True)
    event = await client.event(done.id)
    assert (event.event_type, event.payload, event.correlation_id) == ("order.paid", {"order": 7}, "c-7")
    assert isinstance(event.created_at, datetime.datetime)
    assert (await client.why("event", done.id)).subject == f"event:{done.id}"


async def test_a_text_is_kept_byte_for_byte(client: tidings.AsyncClient) -> None:
    text = '{ "n": 1e400, "n":  1.50 }'
    event = await client.event((await client.publish("a", text)).id)
    assert event.payload_text == text


async def test_lists_are_walked_page_by_page(client: tidings.AsyncClient) -> None:
    many = [tidings.Event("a", str(number)) for number in range(5)] + [{"event_type": "b", "payload": None}]
    published = await client.publish_many(many)
    assert len({one.id for one in published}) == 6
    walked = [event.id async for event in client.events(page_size=2)]
    assert walked == sorted((one.id for one in published), reverse=True)
    assert [event.id async for event in client.events(event_type="b", page_size=1)] == [published[-1].id]


async def test_everything_can_be_done_that_the_api_can_do(client: tidings.AsyncClient, engine: Database) -> None:
    route = await client.add_route("order.*")
    assert (await client.change_route(route.id, dry_run=True, if_version=route.version)).dry_run
    with pytest.raises(errors.ChangedMeanwhile):
        await client.change_route(route.id, dry_run=False, if_version=route.version)
    assert (await client.route(route.id)).version != route.version
    assert [one.id async for one in client.routes()] == [route.id]
    assert (await client.open_gate("routing", reason="test")).is_open
    assert not (await client.close_gate("routing")).is_open
    assert "routing" in [gate.name async for gate in client.gates()]
    made = await client.add_subscription("order.*", "http://127.0.0.1:9/in", verification="none")
    assert made.secret.startswith("whsec_")
    assert made.secret not in repr(made)
    changed = await client.change_subscription(made.id, if_version=made.config_version, description="Invoices")
    assert changed.description == "Invoices"
    with pytest.raises(errors.ChangedMeanwhile):
        await client.change_subscription(made.id, if_version=made.config_version, description="again")
    assert (await client.pause_subscription(made.id)).paused
    assert not (await client.resume_subscription(made.id)).paused
    assert (await client.rotate_secret(made.id)).secret != made.secret
    task = await client.submit_task("EMAIL_SEND", "order-7", {"to": "a@example.com"})
    assert (await client.task(task.id)).payload == {"to": "a@example.com"}
    assert (await client.cancel_task(task.id, reason="test")).outcome == "cancelled"
    assert [one.id async for one in client.tasks(biz_type="EMAIL_SEND")] == [task.id]
    assert (await client.stats()).counted_to > 0
    assert (await client.remove_route(route.id)).id == route.id


async def test_dead_letters_are_read_and_requeued(client: tidings.AsyncClient, engine: Database) -> None:
    scene = Scene(engine, await engine.open("dead_letter_operator"))
    subscription = await scene.subscription()
    await scene.letters(subscription, 3)
    letters = [letter async for letter in client.dead_letters(subscription_id=subscription, page_size=2)]
    assert len(letters) == 3
    first = await client.requeue(letters[0].id)
    assert (await client.requeue(letters[0].id)).already_requeued
    assert (await client.saga(first.saga_id)).generation == 1
    assert (await client.requeue_many(preview=True)).total == 3


async def test_errors_say_what_was_wrong_and_where(served: Served, client: tidings.AsyncClient) -> None:
    with pytest.raises(errors.Missing) as missing:
        await client.event(999)
    assert (missing.value.status, missing.value.code) == (404, "not_found")
    assert missing.value.request_id.startswith("req-")
    with pytest.raises(errors.Invalid) as invalid:
        await client.publish("no spaces", {})
    assert [one.pointer for one in invalid.value.errors] == ["/event_type"]
    with pytest.raises(errors.NotPossible):
        await client.retry_task((await client.submit_task("A", "1")).id)
    async with tidings.AsyncClient(served.url, served.keys["viewer"]) as viewer:
        with pytest.raises(errors.NotAllowed):
            await viewer.publish("a", {})
    async with tidings.AsyncClient(served.url, "tid_nobody") as nobody:
        with pytest.raises(errors.KeyRefused) as refused:
            await nobody.stats()
    assert isinstance(refused.value, tidings.ApiError)
    with pytest.raises(tidings.TidingsError, match="JSON"):
        await client.publish("a", "{")


async def test_a_lost_answer_does_not_double_an_event(served: Served, engine: Database) -> None:
    async with (
        Lossy(served.url, lost=2) as way,
        tidings.AsyncClient(way.url, served.keys["publisher"]) as client,
    ):
        done = await client.publish("a", {"n": 1})
        many = await client.publish_many([{"event_type": "a", "payload": n} for n in range(3)])
    assert way.requests == 4
    assert done.duplicate
    assert not any(one.duplicate for one in many)
    assert await engine.value("SELECT count(*) FROM events", "observer") == 4


async def test_what_can_not_be_repeated_is_not(served: Served, engine: Database) -> None:
    async with Lossy(served.url, lost=1) as way, tidings.AsyncClient(way.url, served.keys["admin"]) as client:
        with pytest.raises(tidings.ApiUnreachable):
            await client.add_route("order.*")
        assert way.requests == 1
        way.lost = 1
        with pytest.raises(tidings.ApiUnreachable):
            await client.publish("a", {}, idempotency_key="")
        assert way.requests == 2
    assert await engine.value("SELECT count(*) FROM routes", "observer") == 1


async def test_where_nobody_listens_that_is_said(unused: ReservedPort) -> None:
    async with tidings.AsyncClient(f"http://127.0.0.1:{unused.number}", "tid_x", retries=1) as client:
        with pytest.raises(tidings.ApiUnreachable, match="did not answer"):
            await client.stats()


async def test_an_answer_that_is_none_of_ours_is_said_to_be_so() -> None:
    async def sign_in_first(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 15\r\nconnection: close\r\n\r\n<h1>Hello!</h1>")
        await writer.drain()
        writer.close()

    proxy = await asyncio.start_server(sign_in_first, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{proxy.sockets[0].getsockname()[1]}"
    async with proxy, tidings.AsyncClient(url, "a-key") as client:
        with pytest.raises(tidings.ApiError, match="is not this API"):
            await client.event(1)


async def test_the_plain_client_does_the_same(served: Served) -> None:
    def use() -> None:
        with tidings.Client(served.url, served.keys["admin"]) as client:
            done = client.publish("a", {"n": 1})
            client.publish_many([{"event_type": "a", "payload": n} for n in range(4)])
            assert client.event(done.id).payload == {"n": 1}
            assert len([event.id for event in client.events(page_size=2)]) == 5
            with pytest.raises(errors.Missing):
                client.subscription(999)

    await asyncio.to_thread(use)


async def test_a_bound_key_publishes_to_its_own_domain_without_saying_so(served: Served) -> None:
    key = await served.key("publisher", "viewer", domain="shop")
    async with tidings.AsyncClient(served.url, key) as client:
        (done,) = await client.publish_many([tidings.Event("a", {})])
        assert (await client.event(done.id)).event_domain == "shop"


@pytest.fixture
def unused() -> Iterator[ReservedPort]:
    reserved = ReservedPort()
    yield reserved
    reserved.release()
