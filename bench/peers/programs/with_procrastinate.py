"""procrastinate on its own terms, in its own Python: `with_procrastinate.py URL TASKS SINGLY`; one line of JSON.

A pool that is larger than the worker's concurrency, uvloop, and batches of 500 when tasks are deferred in bulk.
"""

import json
import sys
import time
from importlib.metadata import version

import procrastinate
import uvloop


async def main(url: str, tasks: int, singly: int) -> None:
    app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=url, min_size=4, max_size=30))
    ran = 0

    @app.task(name="noop")
    async def noop(number: int) -> None:
        nonlocal ran
        ran += 1

    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        began = time.perf_counter()
        for number in range(singly):
            await noop.defer_async(number=number)
        one_by_one = time.perf_counter() - began
        began = time.perf_counter()
        for first in range(singly, tasks, 500):
            await noop.batch_defer_async(*({"number": number} for number in range(first, min(first + 500, tasks))))
        bulk = time.perf_counter() - began
        began = time.perf_counter()
        await app.run_worker_async(concurrency=20, wait=False, install_signal_handlers=False)
        drain = time.perf_counter() - began
    assert ran == tasks
    found = {"single": singly / one_by_one, "bulk": (tasks - singly) / bulk, "drain": tasks / drain}
    print(json.dumps(found | {"version": version("procrastinate")}))


uvloop.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
