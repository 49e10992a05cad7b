"""Attempts, as they are shown with a delivery."""

from pydantic import Field

from tidings.api.describing import Moment, Shown


class Job(Shown):
    """One attempt to send a delivery."""

    id: int = Field(description="Its id.")
    attempt_no: int = Field(description="Counted from 1.")
    status: str = Field(description="Pending, Leased, Completed or Failed.")
    attempt_at: Moment = Field(description="When it was due.")
    worker_id: str | None = Field(description="Who leased it last.")
    lease_until: Moment | None = Field(description="While pending, since when it may be leased; then until when it is.")
    lease_resets: int = Field(description="How often its lease expired.")
    response_status: int | None = Field(description="The HTTP status, if one was read.")
    error_code: str | None = Field(description="Why it failed: one of the closed list of error codes.")
    response_excerpt: str | None = Field(description="The beginning of what the endpoint answered, as text.")
    duration_ms: int | None = Field(description="How long the request took.")
    created_at: Moment = Field(description="When it was made.")
    finished_at: Moment | None = Field(description="When it ended.")
    applied_at: Moment | None = Field(description="When its delivery took the result in.")
