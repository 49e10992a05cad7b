"""procrastinate on its own terms, in its own Python: `peer_procrastinate.py URL TASKS SINGLY`; one line of JSON."""

import asyncio
import json
import sys
import time

import procrastinate


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
    print(json.dumps({"single": singly / one_by_one, "bulk": (tasks - singly) / bulk, "drain": tasks / drain}))


asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
