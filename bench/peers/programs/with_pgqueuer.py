"""pgqueuer on its own terms, in a Python of its own: `with_pgqueuer.py URL TASKS SINGLY`; one line of JSON.

A pool of connections, uvloop, and batches of 500, both for taking and for enqueueing.
"""

import json
import sys
import time
from datetime import timedelta
from importlib.metadata import version
from typing import Any

import asyncpg
import uvloop
from pgqueuer import AsyncpgPoolDriver, PgQueuer, Queries


async def main(url: str, tasks: int, singly: int) -> None:
    pool = await asyncpg.create_pool(url, min_size=4, max_size=10)
    queries = Queries(AsyncpgPoolDriver(pool))
    await queries.install()
    began = time.perf_counter()
    for _ in range(singly):
        await queries.enqueue("noop", b"{}")
    one_by_one = time.perf_counter() - began
    began = time.perf_counter()
    for first in range(singly, tasks, 500):
        count = min(500, tasks - first)
        await queries.enqueue(["noop"] * count, [b"{}"] * count, [0] * count)
    bulk = time.perf_counter() - began
    worker = PgQueuer(AsyncpgPoolDriver(pool))
    ran, began, drain = 0, time.perf_counter(), 0.0

    @worker.entrypoint("noop")
    async def noop(job: Any) -> None:
        nonlocal ran, drain
        ran += 1
        if ran == tasks:
            drain = time.perf_counter() - began
            worker.shutdown.set()

    await worker.run(batch_size=500, dequeue_timeout=timedelta(seconds=2))
    found = {"single": singly / one_by_one, "bulk": (tasks - singly) / bulk, "drain": tasks / drain}
    print(json.dumps(found | {"version": version("pgqueuer")}))


uvloop.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
