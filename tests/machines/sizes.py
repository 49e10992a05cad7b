"""How much is sent while something is done to the machines: a little in every run of the tests, more on demand."""

from tests.chaos.schedule import Tier

ROLES = ("router", "orchestrator", "worker", "cleaner", "task-worker", "rescuer")
SIZES = {
    "small": Tier("small", 240, 24, seconds=4, counts={}, sometimes=0, roles=ROLES),
    "big": Tier("big", 6_000, 600, seconds=60, counts={}, sometimes=0, roles=ROLES),
}
# What must run so that everything comes to its end; two of a kind where they take turns.
CREW = (
    "router-1",
    "router-2",
    "orchestrator-1",
    "orchestrator-2",
    "worker-1",
    "worker-2",
    "cleaner-1",
    "task-worker-1",
    "rescuer-1",
)
