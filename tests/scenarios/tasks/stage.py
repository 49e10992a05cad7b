"""Real processes that run the handlers of a small application; each run of a handler is written into a file."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

from tests.roles.task_worker.scene import Scene
from tests.support.database import Database
from tests.support.processes import Process, tidings
from tests.support.waiting import wait_until

APPLICATION = '''
"""Handlers that write down when they begin, and then do as their type says."""

import asyncio
import os
from pathlib import Path

from tidings import TaskContext, task

HERE = Path(__file__).parent
NAME = os.environ["NAME"]


def begun(context):
    # One short line at the end of a file: nobody's is lost or mixed with another's.
    with open(HERE / "begun", "a", encoding="utf-8") as file:
        file.write(f"{NAME} {context.id} {context.attempt}\\n")


@task("WAIT")
async def wait(payload, context: TaskContext):
    begun(context)
    while not (HERE / f"release-{NAME}").exists():
        await asyncio.sleep(0.02)


@task("POISON")
def poison(payload, context: TaskContext):
    begun(context)
    os.abort()


@task("SHORT", timeout=0.6, visibility_timeout=2, base_delay=0.05, max_delay=0.05)
async def short(payload, context: TaskContext):
    begun(context)
    await asyncio.sleep(0.01)
'''


class TaskStage(Scene):
    def __init__(self, database: Database, folder: Path, start: Callable[[Process], Process]) -> None:
        super().__init__(database)
        self.folder = folder
        self._start = start
        (folder / "shop_tasks.py").write_text(APPLICATION, encoding="utf-8")

    def run(self, role: str, name: str = "-", *arguments: str, **settings: str) -> Process:
        environment = {**self.database.environment(), "TIDINGS_APP": "shop_tasks", "NAME": name, **settings}
        process = tidings("run", role, *arguments, **{"TIDINGS_LOG_FORMAT": "json", **environment})
        process.cwd = self.folder
        return self._start(process)

    def begun(self) -> list[tuple[str, int, int]]:
        """By whom, which task, at which attempt; in order."""
        file = self.folder / "begun"
        lines = file.read_text("utf-8").split("\n")[:-1] if file.exists() else []
        return [(name, int(task), int(attempt)) for name, task, attempt in map(str.split, lines)]

    def runs(self) -> Counter[int]:
        return Counter(task for _, task, _ in self.begun())

    def until_begun(self, *expected: tuple[str, int, int]) -> None:
        wait_until(lambda: self.begun() == [*expected], 30, f"the handlers to begin: {expected}")

    def release(self, name: str) -> None:
        (self.folder / f"release-{name}").touch()
