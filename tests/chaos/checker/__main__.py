"""Judges a run again: `python -m tests.chaos.checker FOLDER URL SCHEMA`."""

import sys
from pathlib import Path

from tests.chaos.checker import Witness, judge

if __name__ == "__main__":
    folder, url, schema = sys.argv[1:]
    verdict = judge(Path(folder), Witness(url, schema))
    sys.stdout.write("\n".join([*verdict.problems, str(verdict.figures), str(verdict.sometimes)]) + "\n")
    sys.exit(bool(verdict.problems))
