"""Every notice the system can give: typed, in the past tense, told where it happens and worded elsewhere."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Notice:
    pass


@dataclass(frozen=True)
class ServerAwaited(Notice):
    """The database did not answer; we go on trying."""

    address: str
    error: str
    waited_seconds: float


@dataclass(frozen=True)
class StepRetried(Notice):
    """A transient error of the database; the whole step is run again."""

    step: str
    attempt: int
    error: str


@dataclass(frozen=True)
class MigrationStepApplied(Notice):
    version: int
    step: str
    purpose: str


@dataclass(frozen=True)
class RightsChanged(Notice):
    """The grants of the server were brought in line with the map."""

    granted: int
    revoked: int


@dataclass(frozen=True)
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


@dataclass(frozen=True)
class EventNotRouted(Notice):
    """The database refused what an event came to; it waits in the dead letters of routing."""

    router: str
    event_id: int
    correlation_id: str
    error: str


@dataclass(frozen=True)
class RouterStopped(Notice):
    """A gate is closed, or something must be confirmed by a person."""

    router: str
    reason: str


@dataclass(frozen=True)
class RouterWorking(Notice):
    """What had stopped the router is over."""

    router: str


@dataclass(frozen=True)
class WritersUnknown(Notice):
    """Who may still bring events could not be read: no hole is closed until it can."""

    router: str
    error: str


@dataclass(frozen=True)
class StepFailed(Notice):
    """A role's step failed; it is tried again after a pause."""

    role: str
    error: str
    pause_seconds: float
