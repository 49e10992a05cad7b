"""Holds the embedded server of a data directory: prints its url when it is up, and lets go when stdin ends."""

import sys
from pathlib import Path

from tidings.db.embedded import hold


def main() -> None:
    with hold(Path(sys.argv[1])) as server:
        sys.stdout.write(server.url(server.superuser, "postgres") + "\n")
        sys.stdout.flush()
        sys.stdin.read()


if __name__ == "__main__":
    main()
