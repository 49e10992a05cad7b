"""What the task producer does in an open transaction."""

from collections.abc import Sequence

from tidings.db.operations import Operations
from tidings.model.submission import AcceptedTask, Submitted
from tidings.roles.task_producer.submitting import submitting


class TaskProducerOperations(Operations):
    async def submit(self, tasks: Sequence[AcceptedTask], *, replace: bool = False) -> list[Submitted]:
        """Stores the tasks whose keys are free; what each came to, in the order given."""
        return await self._answer(submitting(tasks, replace=replace))
