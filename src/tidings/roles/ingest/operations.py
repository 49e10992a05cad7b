"""What the ingest does in an open transaction."""

from collections.abc import Sequence

from tidings.db.operations import Operations
from tidings.model.event import NewEvent, Published
from tidings.roles.ingest.publishing import publishing


class IngestOperations(Operations):
    async def publish(self, events: Sequence[NewEvent]) -> list[Published]:
        """Appends the events that are new; what each came to, in the order given."""
        flow = publishing(events)
        try:
            ask = next(flow)
            while True:
                ask = flow.send(await self._rows(ask.statement, **ask.arguments))
        except StopIteration as end:
            published: list[Published] = end.value
            return published
