"""A plain model of deliveries, as dictionaries: what the tables must say after each step, and nothing of how."""

from dataclasses import dataclass, field

ENDS = ("Completed", "DeadLettered")
MAX_RESETS = 1


@dataclass
class PlainJob:
    """`lease` counts leases: whoever holds an older one is not heard."""

    number: int
    status: str = "Pending"
    resets: int = 0
    lease: int = 0
    is_stale: bool = False
    is_applied: bool = False


@dataclass
class PlainSaga:
    event: int
    subscription: int
    generation: int = 0
    status: str = "Pending"
    attempts: int = 0
    is_due: bool = True
    jobs: list[PlainJob] = field(default_factory=list)

    @property
    def name(self) -> tuple[int, int, int]:
        return (self.event, self.subscription, self.generation)

    @property
    def active(self) -> PlainJob | None:
        return next((job for job in self.jobs if job.status in ("Pending", "Leased")), None)


@dataclass
class PlainSubscription:
    limit: int = 3
    is_paused: bool = False


@dataclass
class Plain:
    """All of it, by the numbers of events and subscriptions."""

    subscriptions: dict[int, PlainSubscription] = field(default_factory=dict)
    unrouted: list[int] = field(default_factory=list)
    sagas: dict[tuple[int, int, int], PlainSaga] = field(default_factory=dict)

    def route(self) -> None:
        for event in self.unrouted:
            for subscription in self.subscriptions:
                saga = PlainSaga(event, subscription)
                self.sagas[saga.name] = saga
        self.unrouted.clear()

    def orchestrate(self) -> None:
        """Results first, then what is due; buried is what has no attempt left."""
        for saga in self.sagas.values():
            for job in saga.jobs:
                if job.status in ("Completed", "Failed") and not job.is_applied:
                    self._apply(saga, job)
        for saga in self.sagas.values():
            if saga.status in ("Pending", "PendingRetry") and saga.is_due and not self._of(saga).is_paused:
                if saga.attempts >= self._of(saga).limit:
                    saga.status = "DeadLettered"
                else:
                    saga.status = "InProgress"
                    saga.jobs.append(PlainJob(saga.attempts + 1))

    def _apply(self, saga: PlainSaga, job: PlainJob) -> None:
        job.is_applied = True
        saga.attempts += 1
        if job.status == "Completed":
            saga.status = "Completed"
        elif saga.attempts >= self._of(saga).limit:
            saga.status = "DeadLettered"
        else:
            saga.status, saga.is_due = "PendingRetry", False

    def lease(self) -> list[tuple[tuple[int, int, int], int, int]]:
        """Everything that waits; a paused subscription's job was made before, and may be sent."""
        found = []
        for saga in self.sagas.values():
            if (job := saga.active) and job.status == "Pending":
                job.status, job.lease = "Leased", job.lease + 1
                found.append((saga.name, job.number, job.lease))
        return found

    def report(self, name: tuple[int, int, int], number: int, lease: int, went_well: bool) -> None:
        job = self.sagas[name].jobs[number - 1]
        if job.status == "Leased" and job.lease == lease:
            job.status, job.is_stale = ("Completed" if went_well else "Failed"), False

    def expire(self) -> None:
        for saga in self.sagas.values():
            if (job := saga.active) and job.status == "Leased":
                job.is_stale = True

    def clean(self) -> None:
        for saga in self.sagas.values():
            if (job := saga.active) and job.is_stale:
                job.status = "Pending" if job.resets < MAX_RESETS else "Failed"
                job.resets, job.lease, job.is_stale = job.resets + 1, job.lease + 1, False

    def make_due(self) -> None:
        for saga in self.sagas.values():
            saga.is_due = True

    def requeue(self) -> None:
        for saga in [*self.sagas.values()]:
            heir = (saga.event, saga.subscription, saga.generation + 1)
            if saga.status == "DeadLettered" and heir not in self.sagas:
                self.sagas[heir] = PlainSaga(*heir)

    def told(self) -> dict[tuple[int, int, int], tuple[object, ...]]:
        """As the tables are to say it."""
        return {
            saga.name: (
                saga.status,
                saga.attempts,
                tuple((job.number, job.status, job.resets, job.is_applied) for job in saga.jobs),
                saga.status == "DeadLettered",
            )
            for saga in self.sagas.values()
        }

    def _of(self, saga: PlainSaga) -> PlainSubscription:
        return self.subscriptions[saga.subscription]
