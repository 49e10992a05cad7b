"""What the observer can tell about lanes: how wide each is open, how it failed, and when something is tried next."""

from tidings.model.lane import SeenLane
from tidings.model.saga import SagaStatus
from tidings.roles.observer.operations import ObserverOperations


class LaneObserver(ObserverOperations):
    async def lane(self, subscription_id: int, window_start: int) -> SeenLane:
        """One that nobody has learnt anything about yet is as wide as at first."""
        row = await self._row("lane", subscription_id=subscription_id)
        first = {
            one["status"]: one["next_attempt_at"]
            for one in await self._rows("first_of_lane", subscription_id=subscription_id)
        }
        waiting = [first[status] for status in (SagaStatus.PENDING, SagaStatus.PENDING_RETRY) if status in first]
        return SeenLane(
            subscription_id,
            row["window_size"] if row else window_start,
            row["failures"] if row else 0,
            row["last_failure_at"] if row else None,
            row["last_error_code"] if row else None,
            is_under_way=SagaStatus.IN_PROGRESS in first,
            next_try_at=min(waiting, default=None),
            now=await self.server_clock(),
        )
