"""docs/reference/retries.md: the formula of the delays, and values to compare with."""

from tidings.decisions.retrying import LONGEST_RETRY_AFTER, Backoff, retry_delay
from tidings.reference.writing import head, table

# The settings' own defaults; a test compares.
DELIVERIES, ATTEMPTS = Backoff(base=5.0, longest=21_600.0, jitter=0.1), 16
TASKS, RETRIES = Backoff(base=60.0, longest=3_600.0, jitter=0.1), 3
WORKED = ((1, 1), (1, 2), (7, 3), (42, 10), (42, 16))
_SAYS = f"""After a failure a delivery is tried again after a delay that anybody can compute:

    delay = min(base · 2^(attempts − 1), max) · (1 + jitter · u)

- `attempts` is how many have failed by now (`attempt_count` of the saga).
- `u` is from 0 to 1: the first 8 bytes of SHA-256 of the text `{{saga_id}}:{{attempts}}`, as a big-endian integer,
  divided by 2^64. So retries spread out, and are the same whenever they are computed.
- If the endpoint sent `Retry-After` (seconds or a date; anything else is ignored), the delay is at least that, up
  to {LONGEST_RETRY_AFTER / 3600:.0f} hours.
- The next attempt is due at the database's time of the statement that took the failure in, plus the delay.

`base` and the limit of attempts can be set for each subscription; the defaults are in [settings](settings.md),
section `retries`. With a failed result and no attempt left the delivery becomes a dead letter at once, in the same
transaction.
"""


def retries_reference() -> str:
    """The whole page."""
    return "\n".join(
        [
            head("Retries, exactly", "src/tidings/decisions/retrying.py", _SAYS),
            "## Worked values\n",
            f"With the defaults: base {DELIVERIES.base:g} s, max {DELIVERIES.longest / 3600:g} h,"
            f" jitter {DELIVERIES.jitter:g}.\n",
            table(
                ("saga", "failed attempts", "seconds until the next"),
                ((str(id), str(failed), f"{retry_delay(DELIVERIES, id, failed):.6f}") for id, failed in WORKED),
            ),
            f"## When the {ATTEMPTS} attempts are made\n",
            "For an endpoint that fails at once, and without jitter, which makes each delay up to a tenth longer:\n",
            table(("attempt", "after", "since the first"), _schedule()),
            "## Tasks\n",
            f"The same formula over the task's id and its retry count, with base {TASKS.base:g} s and max"
            f" {TASKS.longest / 3600:g} h unless the type says otherwise, and {RETRIES} retries unless the task does."
            " `Retry(after=…)` of a handler replaces it.\n",
        ]
    )


def _schedule() -> list[tuple[str, str, str]]:
    plain, since = Backoff(DELIVERIES.base, DELIVERIES.longest, 0.0), 0.0
    rows = [("1", "", "0 s")]
    for failed in range(1, ATTEMPTS):
        delay = retry_delay(plain, 1, failed)
        since += delay
        rows.append((str(failed + 1), _duration(delay), _duration(since)))
    return rows


def _duration(seconds: float) -> str:
    parts = ((int(seconds) // 3600, "h"), (int(seconds) % 3600 // 60, "min"), (int(seconds) % 60, "s"))
    return " ".join(f"{amount} {unit}" for amount, unit in parts if amount)
