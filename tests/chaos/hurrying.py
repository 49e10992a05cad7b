"""The product with shorter pauses, so that minutes of a real installation fit into seconds of a run; and planted bugs.

Only in processes that the tests start, and only what an environment variable beginning with TIDINGS_TEST_ asks for.
"""

import os
from dataclasses import replace

from tests.chaos.plants import plant
from tidings import processes
from tidings.db import dialect, mysql
from tidings.db.engine import Engine
from tidings.roles.cleaner.cleaner import Cleaner
from tidings.roles.rescuer.rescuer import Rescuer
from tidings.roles.retention import retention
from tidings.roles.retention.retention import Retention

PATIENCE = "TIDINGS_TEST_PATIENCE"
KEEP_SECONDS = "TIDINGS_TEST_KEEP_SECONDS"
PLANT = "TIDINGS_TEST_PLANT"
VISIBILITY = "TIDINGS_TEST_VISIBILITY"


def hurry() -> None:
    """What waits for others after it connected waits so long, and upkeep comes round every second."""
    if patience := os.environ.get(PATIENCE):
        for one in (Cleaner, Rescuer):
            assert one.__init__.__kwdefaults__
            one.__init__.__kwdefaults__["patience"] = float(patience)
        processes._SECONDS_BETWEEN_ARCHIVINGS = processes._SECONDS_BETWEEN_REMOVALS = 1.0
        # What had just ended when retention came by is looked at again soon, and not after an hour.
        retention.SECONDS_OF_A_ROUND = 3.0
        _end_idle_transactions_after(1)
    if keep := os.environ.get(KEEP_SECONDS):
        _keep_for(float(keep))
    if name := os.environ.get(PLANT):
        plant(name)


def _end_idle_transactions_after(seconds: int) -> None:
    """As much less as the leases are shorter."""
    postgresql = dialect.DIALECTS["postgresql"]
    begin = postgresql.begin.replace(f"'{dialect.LONGEST_IDLE}s'", f"'{seconds}s'")
    dialect.DIALECTS["postgresql"] = replace(postgresql, begin=begin)
    mysql.LONGEST_IDLE = seconds  # type: ignore[attr-defined]  # as it is read there


def _keep_for(seconds: float) -> None:
    """The settings refuse less than an hour; a run does not last as long."""

    class Hasty(Retention):
        def __init__(self, engine: Engine, keep: float | None) -> None:
            super().__init__(engine, seconds)

    processes.Retention = Hasty  # type: ignore[assignment, attr-defined]  # as it is read there
