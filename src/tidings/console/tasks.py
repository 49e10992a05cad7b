"""Tasks: internal work by type and status, what became of each, and the history."""

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence

from starlette.responses import Response

from tidings.console.declaring import get, post
from tidings.console.fields import Fields, ids_in
from tidings.console.page import ROWS, Page
from tidings.db.engine import Engine
from tidings.errors import InputRefused
from tidings.model.key import Scope
from tidings.model.task import LONGEST_KEY, LONGEST_TYPE, TaskStatus
from tidings.model.task_command import TaskCommanded, TaskCommandOutcome
from tidings.roles.observer.task_pages import COUNTED_TO, TaskFilter, TaskPages
from tidings.roles.observer.tasks import TaskObserver
from tidings.roles.observer.why import why
from tidings.roles.tasks import commands

ROLE = "dead_letter_operator"
# By the words for them, in the order in which people look for them.
STATUSES = {
    "failed": TaskStatus.FAIL_TERMINAL,
    "retrying": TaskStatus.FAIL_RETRY,
    "pending": TaskStatus.PENDING,
    "running": TaskStatus.PROCESSING,
    "success": TaskStatus.SUCCESS,
}
WORDS = {status.value: word for word, status in STATUSES.items()}


async def queue(page: Page) -> Response:
    filter, errors = _filter(page)
    # Who looks for something has seen them.
    kinds = await page.read(TaskPages, TaskPages.kinds) if not page.query else []
    found = await page.listed(
        "tasks", vars(filter), TaskPages, lambda observer, place: observer.queue(filter, ROWS, place)
    )
    shown = {"kinds": kinds, "counted_to": COUNTED_TO, "statuses": [*STATUSES], "words": WORDS}
    return page.show("tasks/index.html", 422 if errors else 200, errors=errors, **shown, **found)


async def history(page: Page) -> Response:
    filter, errors = _filter(page)
    found = await page.listed(
        "archived tasks", vars(filter), TaskPages, lambda observer, place: observer.history(filter, ROWS, place)
    )
    ended = [word for word, status in STATUSES.items() if status in (TaskStatus.SUCCESS, TaskStatus.FAIL_TERMINAL)]
    return page.show("tasks/history.html", 422 if errors else 200, errors=errors, statuses=ended, words=WORDS, **found)


async def find(page: Page) -> Response:
    """To the task of a number that somebody typed."""
    fields = Fields(page.query, page.words)
    id = fields.whole("id")
    if fields.errors:
        return page.go("/tasks", "tasks.told", is_good=False, said=fields.errors["id"])
    return page.go(f"/tasks/{id}" if id else "/tasks")


async def show(page: Page) -> Response:
    id = page.id
    task = await page.read(TaskObserver, lambda observer: observer.task(id))
    explanation = await page.api.as_role("observer", lambda engine: why(engine, f"task:{id}", page.api.retry_limit))
    return page.show("tasks/task.html", task=task, why=explanation, words=WORDS)


async def retry(page: Page) -> Response:
    return await _command(page, lambda engine, ids: commands.retry(engine, ids, page.actor), wakes="task-worker")


async def cancel(page: Page) -> Response:
    reason = page.form.text("reason")
    return await _command(page, lambda engine, ids: commands.cancel(engine, ids, reason, page.actor))


async def _command(
    page: Page, act: Callable[[Engine, list[int]], Awaitable[list[TaskCommanded]]], *, wakes: str = ""
) -> Response:
    ids = _chosen(page)
    if not ids:
        return page.go(_list_of(page), "tasks.none_ticked", is_good=False)
    try:
        return _told(page, await page.api.as_role(ROLE, lambda engine: act(engine, ids), wakes=wakes))
    except InputRefused as refused:
        return page.go(_list_of(page), refused=refused)


def _filter(page: Page) -> tuple[TaskFilter, dict[str, str]]:
    """What is asked for; what can't be read of it is left out, and said."""
    fields = Fields(page.query, page.words)
    kind, key = fields.visible("type", LONGEST_TYPE), fields.line("key", LONGEST_KEY)
    if key and not kind:
        fields.errors.setdefault("key", page.words("tasks.key_needs_type"))
        key = ""
    status = STATUSES.get(fields.one_of("status", tuple(STATUSES)))
    return TaskFilter(kind, key, status, fields.moment("since"), fields.moment("until")), fields.errors


def _chosen(page: Page) -> list[int]:
    """The one of the path, or those that were ticked."""
    if "id" in page.request.path_params:
        return [page.id]
    return ids_in(page.form.all("ids"))


def _told(page: Page, done: Sequence[TaskCommanded]) -> Response:
    """To the task, or back to the list, with what each came to."""
    alone = done[0] if "id" in page.request.path_params else None
    if alone and alone.outcome is TaskCommandOutcome.NOT_FOUND:
        to = "/tasks"
    elif alone:
        to = f"/tasks/{alone.task_id or alone.id}"
    else:
        to = _list_of(page)
    counts = Counter(one.outcome for one in done)
    words = [page.words(f"tasks.outcome.{outcome}", count=count) for outcome, count in counts.items()]
    return page.go(to, "tasks.told", is_good=any(outcome.is_done for outcome in counts), said=" ".join(words))


def _list_of(page: Page) -> str:
    """Where they were: of all addresses only those of this area."""
    if "id" in page.request.path_params:
        return f"/tasks/{page.id}"
    to = page.form["to"]
    return to if to.startswith(("/tasks?", "/tasks/history")) or to == "/tasks" else "/tasks"


routes = [
    get("/tasks", queue, of_all_domains=True),
    get("/tasks/history", history, of_all_domains=True),
    get("/tasks/find", find, of_all_domains=True),
    get("/tasks/{id:int}", show, of_all_domains=True),
    post("/tasks/retry", retry, Scope.OPERATOR),
    post("/tasks/cancel", cancel, Scope.OPERATOR),
    post("/tasks/{id:int}/retry", retry, Scope.OPERATOR),
    post("/tasks/{id:int}/cancel", cancel, Scope.OPERATOR),
]
