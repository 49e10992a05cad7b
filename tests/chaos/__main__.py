"""`python -m tests.chaos --engine postgresql --tier commit --seed 7`: one run, told in the end; exit 1 if wrong."""

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

from tests.chaos.plants import PLANTS
from tests.chaos.run import run
from tests.chaos.schedule import TIERS, schedule, shortened


def main() -> int:
    words = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    words.add_argument("--engine", choices=["postgresql", "mariadb"], required=True)
    words.add_argument("--tier", choices=[*TIERS], default="commit")
    words.add_argument("--seed", type=int, default=1)
    words.add_argument("--seconds", type=float, help="the same at the same pace, but only for so long")
    words.add_argument("--plant", choices=[*PLANTS], default="", help="a bug to be found")
    words.add_argument("--show-schedule", action="store_true", help="only show what would be broken when")
    words.add_argument("--keep", type=Path, help="a folder in which ledgers and logs stay")
    given = words.parse_args()
    tier = shortened(TIERS[given.tier], given.seconds) if given.seconds else TIERS[given.tier]
    if given.show_schedule:
        sys.stdout.write("\n".join(map(str, schedule(tier, given.seed))) + "\n")
        return 0
    with tempfile.TemporaryDirectory(prefix="tidings-chaos-") as temporary:
        folder = given.keep or Path(temporary)
        report = asyncio.run(run(given.engine, tier, given.seed, folder, given.plant))
    if given.keep:
        (given.keep / "problems.txt").write_text("\n".join(report.problems), encoding="utf-8")
    sys.stdout.write(f"{report}\n")
    return int(bool(report.problems or report.rare))


if __name__ == "__main__":
    sys.exit(main())
