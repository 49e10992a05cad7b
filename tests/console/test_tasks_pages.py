"""Tasks in the console: found by what one knows of them, shown whole, retried and cancelled by those who may."""

import re

import pytest

from tests.console.conftest import SignIn
from tests.console.deliveries import QUOTED
from tests.support.database import Database
from tests.support.queue import HISTORY, TASKS, Queue


def listed(text: str) -> list[int]:
    return [int(id) for id in re.findall(r'<td class="tight"><a href="/tasks/(\d+)">', text)]


@pytest.fixture
def queue(engine: Database) -> Queue:
    return Queue(engine)


async def test_the_queue_is_shown_by_type_and_status(queue: Queue, sign_in: SignIn) -> None:
    waiting = await queue.add(2)
    failed = await queue.ended(2, 4, updated_at="'2026-01-02'", result_msg="'Max retries exceeded: boom'")
    later = await queue.ended(1, 4, updated_at="'2026-01-03'")
    other = await queue.add(1, 3, biz_type="'REPORT'")
    viewer = await sign_in("viewer")
    everything = await viewer.text("/tasks")
    assert listed(everything) == sorted([*waiting, *failed, *later, *other], reverse=True)
    assert "Max retries exceeded: boom" in everything
    assert listed(await viewer.text("/tasks?status=failed")) == [*later, *failed[::-1]]
    assert listed(await viewer.text("/tasks?status=pending")) == waiting
    assert listed(await viewer.text("/tasks?status=pending&type=MAIL")) == waiting
    assert listed(await viewer.text("/tasks?status=retrying&type=REPORT")) == other
    assert listed(await viewer.text("/tasks?status=failed&type=REPORT")) == []
    assert listed(await viewer.text("/tasks?type=MAIL")) == sorted([*waiting, *failed, *later])
    assert listed(await viewer.text("/tasks?type=REPORT&key=k5")) == other
    assert (await viewer.get(f"/tasks/find?id={other[0]}")).headers["location"] == f"/tasks/{other[0]}"


async def test_long_lists_come_in_pages(queue: Queue, sign_in: SignIn) -> None:
    ids = await queue.add(70)
    viewer = await sign_in("viewer")
    for path in ("/tasks", "/tasks?status=pending", "/tasks?type=MAIL", "/tasks?status=pending&type=MAIL"):
        first = await viewer.text(path)
        (following,) = re.findall(r'rel="next" href="([^"]+)"', first)
        second = await viewer.text(following.replace("&amp;", "&"))
        assert len(listed(first)) == 50
        assert sorted(listed(first) + listed(second)) == ids, path
        assert 'rel="next"' not in second


async def test_one_task_is_shown_whole_with_the_answer_of_why(queue: Queue, sign_in: SignIn) -> None:
    (id,) = await queue.ended(1, 4, result_msg="'Max retries exceeded: no route to mail'", worker_id="'w-1'")
    text = await (await sign_in("viewer")).text(f"/tasks/{id}")
    for said in ("Given up: MAIL.", "no route to mail", "k0", "w-1", "&#34;a&#34;: 1"):
        assert said in text
    assert (await (await sign_in("viewer")).get("/tasks/999999")).status_code == 404


async def test_an_operator_retries_and_cancels(queue: Queue, sign_in: SignIn) -> None:
    (failed,) = await queue.ended(1, 4)
    (waiting,) = await queue.add(1)
    operator = await sign_in("operator")
    assert "Will be run again: 1." in await operator.after(f"/tasks/{failed}/retry")
    assert (await queue.row(failed))["status"] == 0
    text = await operator.after(f"/tasks/{waiting}/cancel", reason="not needed")
    assert "Cancelled: 1." in text
    assert "not needed" in text
    assert (await queue.row(waiting))["status"] == 4
    assert "Refused, as it has ended: 1." in await operator.after(f"/tasks/{waiting}/cancel")
    actions = [(action, subject) for _, action, subject in await queue.audited() if subject.startswith("task:")]
    assert actions == [("task.retried", f"task:{failed}"), ("task.cancelled", f"task:{waiting}")]


async def test_ticked_tasks_are_retried_at_once_and_what_each_came_to_is_said(queue: Queue, sign_in: SignIn) -> None:
    failed = await queue.ended(3, 4)
    (waiting,) = await queue.add(1)
    operator = await sign_in("operator")
    path = "/tasks?status=failed"
    text = await operator.after("/tasks/retry", ids=[*failed, waiting], to=path)
    assert "Will be run again: 3." in text
    assert "it has not failed for good: 1." in text
    assert {row["status"] for row in await queue.rows()} == {0}
    answer = await operator.post("/tasks/retry", to="https://elsewhere.example/")
    assert answer.headers["location"] == "/tasks"
    assert "No task is ticked." in await operator.text("/tasks")


async def test_the_history_is_searched_by_type_key_status_and_time(queue: Queue, sign_in: SignIn) -> None:
    done = await queue.ended(2)
    failed = await queue.ended(1, 4, biz_type="'REPORT'")
    await queue.archive(*done, *failed)
    await queue.database.sql(f"UPDATE {HISTORY} SET archived_at = '2026-01-01' WHERE id = {done[0]}")
    operator = await sign_in("operator")
    newest = [*failed, done[1], done[0]]
    assert sorted(listed(await operator.text("/tasks/history"))) == sorted(newest)
    assert listed(await operator.text("/tasks/history"))[-1] == done[0]
    assert listed(await operator.text("/tasks/history?type=MAIL")) == done
    assert listed(await operator.text("/tasks/history?type=MAIL&key=k1")) == done[1:]
    assert listed(await operator.text("/tasks/history?status=failed")) == failed
    assert listed(await operator.text("/tasks/history?status=failed&type=MAIL")) == []
    assert listed(await operator.text("/tasks/history?since=2026-01-01T00:00&until=2026-01-01T23:00")) == done[:1]
    assert "Submitted anew: 1." in await operator.after(f"/tasks/{failed[0]}/retry")
    (anew,) = await queue.rows()
    assert (anew["biz_type"], anew["status"]) == ("REPORT", 0)


async def test_a_viewer_sees_no_buttons_and_is_refused(queue: Queue, sign_in: SignIn) -> None:
    (failed,), (waiting,) = await queue.ended(1, 4), await queue.add(1)
    viewer, bound = await sign_in("viewer"), await sign_in("viewer", domain="eu")
    for path in ("/tasks", f"/tasks/{failed}", f"/tasks/{waiting}", "/tasks/history"):
        assert not re.search(r'action="/tasks/(\d+/)?(retry|cancel)"|name="ids"', await viewer.text(path))
        assert (await bound.get(path)).status_code == 403
    before = await queue.rows()
    for path in (f"/tasks/{failed}/retry", f"/tasks/{waiting}/cancel", "/tasks/retry", "/tasks/cancel"):
        assert (await viewer.post(path, ids=[failed, waiting])).status_code == 403
        assert (await bound.post(path, ids=[failed, waiting])).status_code == 403
    assert await queue.rows() == before


async def test_what_nobody_can_look_for_is_said_beside_its_field(sign_in: SignIn) -> None:
    viewer = await sign_in("viewer")
    wrong = ("type=%00", "key=k1", "type=a%20b", "since=tomorrow", "status=9", "until=2026-13-01", "type=%FF%FE")
    for path in ("/tasks", "/tasks/history"):
        for query in wrong:
            answer = await viewer.get(f"{path}?{query}")
            assert answer.status_code == 422, query
            # The queue has no fields of time; there such a query is nobody's.
            assert "aria-invalid" in answer.text or (path == "/tasks" and query.startswith(("since", "until")))


async def test_what_others_wrote_is_text(queue: Queue, sign_in: SignIn) -> None:
    (id,) = await queue.ended(
        1, 4, biz_key=f"'{QUOTED[:90]}'", result_msg=f"'{QUOTED}'", worker_id=f"'{QUOTED[:90]}'", payload="'\"</pre>\"'"
    )
    await queue.archive(id)
    viewer = await sign_in("viewer")
    for path in ("/tasks/history", f"/tasks/{id}"):
        text = await viewer.text(path)
        assert "&lt;script&gt;alert(1)" in text
        assert "<script>alert" not in text
        assert "<img src=x" not in text
    assert "&lt;/pre&gt;" in await viewer.text(f"/tasks/{id}")
    assert await queue.ids(TASKS) == []
