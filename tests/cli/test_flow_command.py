"""`tidings flow` shows the map that is in force."""

import json
from pathlib import Path

from tests.support.commands import run
from tidings.flow import ROLE_NAMES


def test_flow_shows_every_role(tmp_path: Path) -> None:
    shown = run("flow", cwd=tmp_path).stdout
    assert all(role in shown for role in ROLE_NAMES)


def test_flow_is_machine_readable(tmp_path: Path) -> None:
    roles = {role["role"]: role for role in json.loads(run("flow", "--json", cwd=tmp_path).stdout)}
    assert {"verb": "INSERT", "on": "webhook_delivery_sagas", "columns": None, "but": None} in roles["event_router"][
        "may"
    ]
