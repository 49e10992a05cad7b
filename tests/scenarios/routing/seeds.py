"""The seed of a randomised test: a new one each time, or the one that TIDINGS_TEST_SEED repeats."""

import os
import secrets


def chosen_seed() -> int:
    return int(os.environ.get("TIDINGS_TEST_SEED") or secrets.randbelow(1_000_000_000))


def repeat(seed: int) -> str:
    """How to run a failed test again."""
    return f"repeat with TIDINGS_TEST_SEED={seed}"
