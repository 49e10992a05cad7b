"""`python -m tidings.reference [--check] FOLDER`: writes the pages, or only says which are out of step."""

import sys
from pathlib import Path

from tidings.reference import PAGES, stale_pages


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
