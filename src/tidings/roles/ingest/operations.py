"""What the ingest does in an open transaction."""

from collections.abc import Sequence

from tidings.db.operations import Operations
from tidings.model.event import NewEvent, Published
from tidings.roles.ingest.publishing import publishing


class IngestOperations(Operations):
    async def publish(self, events: Sequence[NewEvent]) -> list[Published]:
        """Appends the events that are new; what each came to, in the order given."""
        return await self._answer(publishing(events))
