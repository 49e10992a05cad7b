"""Every notice the system can give: typed, in the past tense, told where it happens and worded elsewhere."""

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, eq=False, repr=False)
class Notice:
    """`delivery_status` is where the saga or job that it is about stands now, if it is about one.

    Compared and printed by what stands here: made for each kind, that would be a tenth of a command's start.
    """

    delivery_status: ClassVar[str] = ""

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((type(self), *vars(self).values()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in vars(self).items())})"


@dataclass(frozen=True, eq=False, repr=False)
class ServerAwaited(Notice):
    """The database did not answer; we go on trying."""

    address: str
    error: str
    waited_seconds: float


@dataclass(frozen=True, eq=False, repr=False)
class StepRetried(Notice):
    """A transient error of the database; the whole step is run again."""

    step: str
    attempt: int
    error: str


@dataclass(frozen=True, eq=False, repr=False)
class MigrationStepApplied(Notice):
    version: int
    step: str
    purpose: str


@dataclass(frozen=True, eq=False, repr=False)
class RightsChanged(Notice):
    """The grants of the server were brought in line with the map."""

    granted: int
    revoked: int


@dataclass(frozen=True, eq=False, repr=False)
class EventsRouted(Notice):
    """One pass of a router; the last five count its decisions."""

    router: str
    events: int
    late: int
    sagas: int
    tasks: int
    holes: int
    sent: int
    dry_run: int
    disabled: int
    skipped: int
    failed: int


@dataclass(frozen=True, eq=False, repr=False)
class EventRouted(Notice):
    """One event of it, and what it came to. There are as many as events: made only where somebody listens."""

    correlation_id: str
    event_id: int
    router: str
    statuses: tuple[str, ...]
    sagas: int
    tasks: int


@dataclass(frozen=True, eq=False, repr=False)
class EventNotRouted(Notice):
    """The database refused what an event came to; it waits in the dead letters of routing."""

    router: str
    event_id: int
    correlation_id: str
    error: str


@dataclass(frozen=True, eq=False, repr=False)
class RouterStopped(Notice):
    """A gate is closed, or something must be confirmed by a person."""

    router: str
    reason: str


@dataclass(frozen=True, eq=False, repr=False)
class RouterWorking(Notice):
    """What had stopped the router is over."""

    router: str


@dataclass(frozen=True, eq=False, repr=False)
class WritersUnknown(Notice):
    """Who may still bring events could not be read: no hole is closed until it can."""

    router: str
    error: str


@dataclass(frozen=True, eq=False, repr=False)
class StepFailed(Notice):
    """A role's step failed; it is tried again after a pause."""

    role: str
    error: str
    pause_seconds: float


@dataclass(frozen=True, eq=False, repr=False)
class WakeupsUnheard(Notice):
    """Notifications do not come through, as behind a pooler in transaction mode; every role asks at its own pace."""

    waits_seconds: float


@dataclass(frozen=True, eq=False, repr=False)
class RowSetAside(Notice):
    """The database refuses what should happen to one row; it waits, its neighbours go on."""

    role: str
    row: str
    error: str


@dataclass(frozen=True, eq=False, repr=False)
class SagasStarted(Notice):
    """For each of so many a job was made."""

    sagas: int


@dataclass(frozen=True, eq=False, repr=False)
class SagaStarted(Notice):
    """One of them. There are as many as requests: made only where somebody listens."""

    delivery_status: ClassVar[str] = "InProgress"
    correlation_id: str
    event_id: int
    saga_id: int
    subscription_id: int
    attempt_no: int


@dataclass(frozen=True, eq=False, repr=False)
class AboutResult(Notice):
    """What every notice about the result of a job says; without a job where no job was the reason."""

    correlation_id: str
    event_id: int
    saga_id: int
    job_id: int | None
    worker_id: str | None
    lease_expiration: str | None


@dataclass(frozen=True, eq=False, repr=False)
class SagasCompleted(Notice):
    """So many were delivered."""

    sagas: int


@dataclass(frozen=True, eq=False, repr=False)
class SagaCompleted(AboutResult):
    """One of them; made only where somebody listens."""

    delivery_status: ClassVar[str] = "Completed"
    attempt_count: int


@dataclass(frozen=True, eq=False, repr=False)
class SagaRetryScheduled(AboutResult):
    delivery_status: ClassVar[str] = "PendingRetry"
    attempt_count: int
    error_code: str
    delay_seconds: float


@dataclass(frozen=True, eq=False, repr=False)
class SagaDeadLettered(AboutResult):
    delivery_status: ClassVar[str] = "DeadLettered"
    attempt_count: int
    error_code: str


@dataclass(frozen=True, eq=False, repr=False)
class ResultIgnored(AboutResult):
    """The saga was not waiting for a result."""

    saga_status: str


@dataclass(frozen=True, eq=False, repr=False)
class EndpointDown(Notice):
    """So many attempts in a row have failed that it gets one at a time from now on; the others wait, uncounted."""

    subscription_id: int
    failures: int
    error_code: str


@dataclass(frozen=True, eq=False, repr=False)
class EndpointUp(Notice):
    """An attempt went well after all of these failures; its window grows again."""

    subscription_id: int
    failures: int


@dataclass(frozen=True, eq=False, repr=False)
class AboutLease(Notice):
    saga_id: int
    job_id: int
    worker_id: str | None
    lease_expiration: str
    lease_resets: int


@dataclass(frozen=True, eq=False, repr=False)
class LeaseReset(AboutLease):
    """Its worker did not report in time; anybody may send it again."""

    delivery_status: ClassVar[str] = "Pending"


@dataclass(frozen=True, eq=False, repr=False)
class LeaseExpired(AboutLease):
    """It expired once too often; the job has failed, and whether the endpoint got it is not known."""

    delivery_status: ClassVar[str] = "Failed"
    error_code: str = "lease_expired"


@dataclass(frozen=True, eq=False, repr=False)
class SagasRequeued(Notice):
    """New generations of ended sagas were started by a person."""

    saga_ids: tuple[int, ...]


@dataclass(frozen=True, eq=False, repr=False)
class JobsLeased(Notice):
    """As many as one claim found."""

    worker_id: str
    jobs: int


@dataclass(frozen=True, eq=False, repr=False)
class JobLeased(AboutResult):
    """One of them. There are as many as requests: made only where somebody listens."""

    delivery_status: ClassVar[str] = "Leased"
    attempt_no: int


@dataclass(frozen=True, eq=False, repr=False)
class JobsGivenBack(Notice):
    """Leased and not sent; anybody may lease them again."""

    delivery_status: ClassVar[str] = "Pending"
    worker_id: str
    job_ids: tuple[int, ...]
    reason: str


@dataclass(frozen=True, eq=False, repr=False)
class DeliveriesSucceeded(Notice):
    """Endpoints took them, which was reported; so long it took each time. The sagas do not know yet."""

    worker_id: str
    durations_ms: tuple[int, ...]


@dataclass(frozen=True, eq=False, repr=False)
class DeliverySucceeded(AboutResult):
    """The endpoint took it; nobody else knows yet. There are as many as requests: made only where somebody listens."""

    delivery_status: ClassVar[str] = "Completed"
    response_status: int | None
    duration_ms: int


@dataclass(frozen=True, eq=False, repr=False)
class DeliveryFailed(AboutResult):
    delivery_status: ClassVar[str] = "Failed"
    response_status: int | None
    duration_ms: int
    error_code: str


@dataclass(frozen=True, eq=False, repr=False)
class DeliveryCrashed(AboutResult):
    """Something nobody planned for while it was sent; nothing is reported, and the lease will expire."""

    error: str


@dataclass(frozen=True, eq=False, repr=False)
class LeaseLost(AboutResult):
    """A report came too late: the job is somebody else's now, and nothing was changed."""

    response_status: int | None
    error_code: str | None


@dataclass(frozen=True, eq=False, repr=False)
class ReportDelayed(Notice):
    """The database does not take reports; they are kept and made again."""

    worker_id: str
    reports: int
    error: str


@dataclass(frozen=True, eq=False, repr=False)
class EndpointUnusable(Notice):
    """Its secrets can't be opened with our keys; nothing is sent to it, its jobs are given back."""

    subscription_id: int
    error: str


@dataclass(frozen=True, eq=False, repr=False)
class TasksArchived(Notice):
    """Finished tasks went to the history."""

    tasks: int


@dataclass(frozen=True, eq=False, repr=False)
class EndpointChecked(Notice):
    """An endpoint was called because a person asked for it. Only the operator sees more of it than the outcome."""

    subscription_id: int
    kind: str
    outcome: str
    response_status: int | None
    error_code: str | None
    duration_ms: int | None


@dataclass(frozen=True, eq=False, repr=False)
class StoriesRemoved(Notice):
    """Retention removed whole finished stories, and tasks from the history; all of them are counted by the day."""

    events: int
    sagas: int
    jobs: int
    tasks: int


@dataclass(frozen=True, eq=False, repr=False)
class TasksClaimed(Notice):
    """As many as one claim got; `lost` of its candidates were claimed by others meanwhile."""

    worker_id: str
    tasks: int
    lost: int


@dataclass(frozen=True, eq=False, repr=False)
class AboutTask(Notice):
    """What every notice about one run of a task says."""

    correlation_id: str
    task_id: int
    biz_type: str
    worker_id: str | None
    attempt: int


@dataclass(frozen=True, eq=False, repr=False)
class TaskClaimed(AboutTask):
    """One of them. There are as many as tasks: made only where somebody listens."""


@dataclass(frozen=True, eq=False, repr=False)
class TasksSucceeded(Notice):
    """Their handlers returned, which was stored; so long it took each time."""

    worker_id: str
    biz_type: str
    durations_ms: tuple[int, ...]


@dataclass(frozen=True, eq=False, repr=False)
class TaskSucceeded(AboutTask):
    """Its handler returned. There are as many as tasks: made only where somebody listens."""

    duration_ms: int


@dataclass(frozen=True, eq=False, repr=False)
class TaskRetryScheduled(AboutTask):
    """Its handler failed; it is tried again."""

    duration_ms: int
    error: str
    delay_seconds: float
    traceback: str


@dataclass(frozen=True, eq=False, repr=False)
class TaskFailed(AboutTask):
    """Its handler failed for good: it said so, or no retry is left."""

    duration_ms: int
    error: str
    traceback: str


@dataclass(frozen=True, eq=False, repr=False)
class TaskOverdue(AboutTask):
    """Its handler is out of time and runs in a thread, which nobody can stop; it has failed, and keeps its slot."""

    timeout_seconds: float


@dataclass(frozen=True, eq=False, repr=False)
class TaskFenceLost(AboutTask):
    """A result came too late: the task was rescued meanwhile and is somebody else's, and nothing was changed."""

    outcome: str
    result_msg: str


@dataclass(frozen=True, eq=False, repr=False)
class TasksGivenBack(Notice):
    """Claimed and not begun; anybody may claim them again."""

    worker_id: str
    task_ids: tuple[int, ...]
    reason: str


@dataclass(frozen=True, eq=False, repr=False)
class TaskRescued(AboutTask):
    """Its worker gave no sign of life for too long; it is tried again."""


@dataclass(frozen=True, eq=False, repr=False)
class TaskGivenUp(AboutTask):
    """The same, and no retry is left."""


@dataclass(frozen=True, eq=False, repr=False)
class ApiListening(Notice):
    """The HTTP API takes requests from now on."""

    url: str


@dataclass(frozen=True, eq=False, repr=False)
class RequestCrashed(Notice):
    """A request could not be answered, and it was not the caller's fault."""

    request_id: str
    method: str
    path: str
    error: str
    traceback: str


@dataclass(frozen=True, eq=False, repr=False)
class WorkStopped(Notice):
    """A requeue or a replay that went on after its answer failed; what it did stays, the rest is not tried."""

    work: str
    error: str
    traceback: str


@dataclass(frozen=True, eq=False, repr=False)
class ActivityCrashed(Notice):
    """Something nobody planned for; the role is begun again after a pause."""

    activity: str
    error: str
    pause_seconds: float
    traceback: str


@dataclass(frozen=True, eq=False, repr=False)
class StopOverdue(Notice):
    """It was told to stop and did not in time; it is broken off, and what it was at is undone."""

    activity: str
    waited_seconds: float
