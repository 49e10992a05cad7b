"""What became of a requeue or a resend: a new delivery, the one there was already, or a refusal with its reason."""

from pydantic import Field

from tidings.api.describing import Answer, Shown
from tidings.api.problems import Refused
from tidings.model.dead_letter import Requeued, RequeueOutcome

_REASONS = {
    RequeueOutcome.NOT_ENDED_SO: "has not ended so that it could be sent again",
    RequeueOutcome.SUBSCRIPTION_INACTIVE: "belongs to a subscription that is not active",
    RequeueOutcome.SUBSCRIPTION_UNVERIFIED: "belongs to a subscription that is not verified",
}


class Generation(Shown):
    """The delivery that was made of another."""

    id: int = Field(description="What was asked for: the dead letter, or the saga.")
    saga_id: int = Field(description="The new delivery.", examples=[35])
    generation: int = Field(description="Its generation.", examples=[1])
    already_requeued: bool = Field(description="It had been made before; nothing was done now.")


def one_generation(done: Requeued, what: str) -> Answer:
    match done.outcome:
        case RequeueOutcome.STARTED | RequeueOutcome.ALREADY_STARTED:
            already = done.outcome is RequeueOutcome.ALREADY_STARTED
            fields = {"id": done.id, "saga_id": done.saga_id, "generation": done.generation}
            return Answer({**fields, "already_requeued": already}, status_code=202)
        case RequeueOutcome.NOT_FOUND:
            raise Refused("not_found", f"There is no {what}.")
    raise Refused("conflict", f"The {what} {_REASONS[done.outcome]}.")
