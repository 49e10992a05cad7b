"""What may flow at all: a gate that is closed, missing or unreadable stops whatever stands behind it."""

from tidings.errors import GateClosed, StatementFailed
from tidings.model.route import ROUTING_GATE, router_gate
from tidings.roles.router.operations import RouterOperations


def gates_of(worker_name: str) -> tuple[str, str]:
    return ROUTING_GATE, router_gate(worker_name)


async def refuse_if_closed(operations: RouterOperations, *names: str) -> None:
    try:
        closed = await operations.closed_gates(names)
    except StatementFailed as error:
        raise GateClosed(f"The gates can't be read, so they are closed. {error.what}") from error
    if closed:
        raise GateClosed(
            f"Closed: {', '.join(f'gate {name}' for name in closed)}.",
            " ".join(f"`tidings gates open {name}`" for name in closed),
        )
