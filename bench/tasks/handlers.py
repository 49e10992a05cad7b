"""An application whose only task does nothing, for `tidings run task-worker --app bench.tasks.handlers`."""

from bench.payload import TASK_TYPE
from tidings import task


@task(TASK_TYPE)
async def noop(payload: object) -> None:
    pass
