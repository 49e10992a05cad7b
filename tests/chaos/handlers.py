"""The tasks of a run: each handler writes down that it has begun, and then does well, or fails now and then."""

import asyncio
import json
import os
import time
from typing import Any

from tests.chaos.endpoints import HANDLER_SECONDS
from tidings import TaskContext, task

RUNS = os.open(os.environ["TIDINGS_TEST_RUNS"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
VISIBILITY = float(os.environ["TIDINGS_TEST_VISIBILITY"])
TERMS: dict[str, Any] = {
    "timeout": HANDLER_SECONDS,
    "visibility_timeout": VISIBILITY,
    "base_delay": 0.1,
    "max_delay": 0.5,
}


def write(context: TaskContext, what: str) -> None:
    line = {"task": context.id, "attempt": context.attempt, "pid": os.getpid(), "what": what, "at": time.time()}
    os.write(RUNS, json.dumps(line).encode() + b"\n")


@task("QUICK", **TERMS)
async def quick(payload: object, context: TaskContext) -> None:
    write(context, "begun")
    await asyncio.sleep(0.05)
    write(context, "done")


@task("FLAKY", **TERMS)
async def flaky(payload: object, context: TaskContext) -> None:
    write(context, "begun")
    if context.attempt == 1 and context.id % 3 == 0:
        raise RuntimeError("the first time it does not work")
    write(context, "done")


@task("SLOW", **TERMS)
async def slow(payload: object, context: TaskContext) -> None:
    write(context, "begun")
    await asyncio.sleep(0.4)
    write(context, "done")
