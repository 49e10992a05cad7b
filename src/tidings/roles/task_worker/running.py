"""Runs one handler and tells what came of it, whatever it does: nothing that it raises gets past here."""

import traceback
from dataclasses import dataclass
from types import AsyncGeneratorType, CoroutineType, GeneratorType

from tidings.decisions.finishing import Failed, HandlerResult, Refused, Succeeded
from tidings.errors import PayloadUnfit
from tidings.roles.task_worker.operations import ClaimedTask
from tidings.tasks import Fail, Handler, Retry, TaskContext


@dataclass(frozen=True, slots=True)
class Ran:
    """`trace` is where an error came from that the handler did not mean."""

    result: HandlerResult
    trace: str = ""


WELL = Ran(Succeeded())
# What a plain function gives back that only wraps an `async def`, or has a `yield` in it: nothing has been done yet.
_NOT_BEGUN = (CoroutineType, GeneratorType, AsyncGeneratorType)


async def run_async(handler: Handler, task: ClaimedTask, context: TaskContext | None) -> Ran:
    try:
        await handler.function(*_arguments(handler, task, context))
    except BaseException as error:  # `sys.exit()` in a handler must not end the others
        return what_came_of(error)
    return WELL


def run_plain(handler: Handler, task: ClaimedTask, context: TaskContext | None) -> Ran:
    try:
        returned = handler.function(*_arguments(handler, task, context))
    except BaseException as error:
        return what_came_of(error)
    if isinstance(returned, _NOT_BEGUN):
        return Ran(Failed(f"The handler returned a {type(returned).__name__}, which nobody runs"))
    return WELL


def _arguments(handler: Handler, task: ClaimedTask, context: TaskContext | None) -> tuple[object, ...]:
    payload = handler.read_payload("null" if task.payload is None else task.payload)
    return (payload,) if context is None else (payload, context)


def what_came_of(error: BaseException) -> Ran:
    match error:
        case Retry():
            return Ran(Failed(_words(error), error.after))
        case Fail():
            return Ran(Refused(_words(error)))
        case PayloadUnfit():
            return Ran(Failed(error.what))
    words = _words(error)
    name = type(error).__name__
    return Ran(Failed(f"{name}: {words}" if words else name), _trace(error))


def _words(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # its own words fail it
        return ""


def _trace(error: BaseException) -> str:
    try:
        return "".join(traceback.format_exception(error))
    except Exception:
        return ""
