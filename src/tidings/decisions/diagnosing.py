"""What `doctor` makes of what it found: each finding says what is so, whether that is right, and what to do."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

LARGEST_CLOCK_DIFFERENCE = 30.0
_SHOWN = 6


class Health(StrEnum):
    RIGHT = "right"
    DOUBTFUL = "doubtful"
    WRONG = "wrong"


@dataclass(frozen=True)
class Finding:
    subject: str
    health: Health
    says: str
    remedy: str = ""


@dataclass(frozen=True)
class ServerSetting:
    """A setting of the server; `wanted` lists the right values, with bars between them."""

    name: str
    value: str
    wanted: str

    @property
    def is_right(self) -> bool:
        return self.value.lower() in self.wanted.lower().split("|")


def right(subject: str, says: str) -> Finding:
    return Finding(subject, Health.RIGHT, says)


def judge_settings(subject: str, settings: Sequence[ServerSetting], remedy: str) -> Finding:
    wrong = [setting for setting in settings if not setting.is_right]
    if not wrong:
        return right(subject, ", ".join(f"{setting.name} {setting.value}" for setting in settings))
    says = "; ".join(f"{s.name} is {s.value}, not {s.wanted.replace('|', ' or ')}" for s in wrong)
    return Finding(subject, Health.WRONG, says, remedy)


def judge_isolation(level: str) -> Finding:
    if level == "read committed":
        return right("isolation", level)
    return Finding(
        "isolation",
        Health.WRONG,
        f"{level}, not read committed",
        "Remove the setting of the login that overrides ours.",
    )


def judge_clock(difference_seconds: float) -> Finding:
    says = f"{abs(difference_seconds):.1f} s {'ahead of' if difference_seconds > 0 else 'behind'} the database"
    if abs(difference_seconds) <= LARGEST_CLOCK_DIFFERENCE:
        return right("clock", f"this machine is {says}")
    return Finding(
        "clock",
        Health.DOUBTFUL,
        f"this machine is {says}",
        "Leases are safe, they use the database's clock; let NTP set both, for the time stamps that receivers check.",
    )


def judge_migrations(missing: Sequence[tuple[int, str]], newest: int) -> Finding:
    if not missing:
        return right("schema version", f"{newest}, as this program needs")
    return Finding(
        "schema version", Health.WRONG, f"{len(missing)} steps of migrations are missing", "Run `tidings migrate`."
    )


def judge_schema(differences: Sequence[str]) -> Finding:
    if not differences:
        return right("tables and indexes", "as written")
    return Finding(
        "tables and indexes",
        Health.WRONG,
        listed(differences),
        "Somebody changed the schema by hand. Put it back; `tidings migrate --print` shows how each thing is made.",
    )


def judge_rights(missing: Sequence[str], excess: Sequence[str]) -> Finding:
    if not missing and not excess:
        return right("rights", "every role has what the map says and nothing else")
    says = [*(f"missing: {line}" for line in missing), *(f"too much: {line}" for line in excess)]
    return Finding("rights", Health.WRONG, listed(says), "Run `tidings migrate` as the owner; it puts them right.")


def judge_boundary(sharing: Sequence[str]) -> Finding:
    if not sharing:
        return right("boundary", "each role has a login of its own")
    return Finding(
        "boundary",
        Health.DOUBTFUL,
        f"{len(sharing)} roles share one login and only SET ROLE: that keeps mistakes out, but is no boundary",
        "Run `tidings migrate --roles=create` and set TIDINGS_DATABASE_URL_<ROLE> for each role.",
    )


def listed(lines: Sequence[str]) -> str:
    """The first few of many, so that one damaged table does not fill the screen."""
    more = f"; and {len(lines) - _SHOWN} more" if len(lines) > _SHOWN else ""
    return "; ".join(lines[:_SHOWN]) + more


def is_well(findings: Sequence[Finding]) -> bool:
    return all(finding.health is not Health.WRONG for finding in findings)
