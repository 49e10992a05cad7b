"""Makes the pages of docs/reference that come from code: `python -m tidings.reference [--check] FOLDER`."""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from tidings.cli.reference import command_line_reference
from tidings.flow_reference import flow_reference
from tidings.settings.reference import settings_reference

PAGES: Mapping[str, Callable[[], str]] = {
    "command-line.md": command_line_reference,
    "flow.md": flow_reference,
    "settings.md": settings_reference,
}


def stale_pages(folder: Path) -> list[str]:
    """The pages that no longer say what the code says."""
    return [
        name
        for name, make in PAGES.items()
        if not (folder / name).is_file() or (folder / name).read_text("utf-8") != make()
    ]


def main(arguments: list[str]) -> int:
    folder = Path(arguments[-1])
    if "--check" not in arguments:
        for name, make in PAGES.items():
            (folder / name).write_text(make(), "utf-8")
    stale = stale_pages(folder)
    for name in stale:
        sys.stderr.write(f"{folder / name} is not what the code says; run `make docs`.\n")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
