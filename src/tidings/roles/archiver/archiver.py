"""One archiver: a step moves a small batch of finished tasks to the history, in one transaction."""

from dataclasses import dataclass

from tidings.db.engine import Engine
from tidings.db.halving import write_by_halves
from tidings.errors import StatementFailed
from tidings.roles.archiver.operations import ArchiverOperations
from tidings.telemetry.bus import tell
from tidings.telemetry.notices import RowSetAside, TasksArchived

BATCH = 500
_MOST_SET_ASIDE = 1000


@dataclass(frozen=True)
class Archived:
    """How many tasks one step moved, and how many the database would not let it move."""

    moved: int = 0
    refused: int = 0

    @property
    def did_work(self) -> bool:
        return bool(self.moved)


class Archiver:
    """`engine` is one of the role task_archiver; tasks go when they have been finished for `archive_after` seconds."""

    def __init__(self, engine: Engine, archive_after: float, *, batch: int = BATCH) -> None:
        self._engine = engine
        self._archive_after = archive_after
        self._batch = batch
        self._set_aside: set[int] = set()

    async def step(self) -> Archived:
        """Safe to run in any number at once: a task that one has locked the others pass over."""
        found, refused = await ArchiverOperations.step(self._engine, self._archive)
        self._remember(refused)
        if moved := len(found) - len(refused):
            tell(TasksArchived(moved))
        return Archived(moved, len(refused))

    async def _archive(self, operations: ArchiverOperations) -> tuple[list[int], list[tuple[int, StatementFailed]]]:
        ids = await operations.finished_tasks(self._archive_after, self._batch, self._set_aside)
        return ids, await write_by_halves(operations, ids, operations.archive_tasks)

    def _remember(self, refused: list[tuple[int, StatementFailed]]) -> None:
        """So that they do not stand in the way of the others; when they are too many, all are tried again."""
        for id, error in refused:
            tell(RowSetAside("archiver", f"task:{id}", error.what))
        self._set_aside |= {id for id, _ in refused}
        if len(self._set_aside) > _MOST_SET_ASIDE:
            self._set_aside.clear()
