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
