"""`python -m tests.machines failover --engine postgresql --size big`: one trial, told in the end; exit 1 if wrong."""

import argparse
import asyncio
import os
import sys
import tempfile
from pathlib import Path

from tests.machines import clocks, disks, failover, hosts
from tests.machines.sizes import SIZES

TRIALS = {
    "failover": failover.synchronous,
    "lossy-failover": failover.asynchronous,
    "hosts": hosts.cut_off,
    "silence": hosts.silence,
    "clocks": clocks.wrong,
    "disk": disks.full,
    "disk-of-the-log": disks.full_for_the_log,
}
# What a trial has for itself alone, so that nothing of it is left when its last process ends, in whatever way.
OWN = {"hosts": "--net", "silence": "--net", "disk": "--mount", "disk-of-the-log": "--mount"}
IS_APART = "TIDINGS_TEST_APART"


def main() -> int:
    words = argparse.ArgumentParser(prog="python -m tests.machines", description=__doc__)
    words.add_argument("trial", choices=[*TRIALS])
    words.add_argument("--engine", choices=["postgresql", "mariadb"], required=True)
    words.add_argument("--size", choices=[*SIZES], default="small")
    words.add_argument("--keep", type=Path, help="a folder in which ledgers and logs stay")
    given = words.parse_args()
    if given.trial in OWN and IS_APART not in os.environ:
        command = [sys.executable, "-m", "tests.machines", *sys.argv[1:]]
        os.execvpe("unshare", ["unshare", OWN[given.trial], *command], {**os.environ, IS_APART: "1"})
    with tempfile.TemporaryDirectory(prefix="tidings-machines-") as temporary:
        report = asyncio.run(TRIALS[given.trial](given.engine, SIZES[given.size], given.keep or Path(temporary)))
    sys.stdout.write(f"{report}\n")
    return int(bool(report.problems))


if __name__ == "__main__":
    sys.exit(main())
