"""Brings the console's script into what is built: a wheel without it would be half a console."""

import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Assets(BuildHookInterface[Any]):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        subprocess.run([sys.executable, Path(self.root) / "scripts" / "fetch-assets"], check=True)
