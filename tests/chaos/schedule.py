"""What is broken when, drawn from a seed alone: the same seed is the same schedule, on every machine and engine."""

import random
from dataclasses import dataclass, replace

DELIVERY_ROLES = ("router", "orchestrator", "worker", "cleaner")
ROLES = (*DELIVERY_ROLES, "task-worker", "rescuer", "archiver", "retention", "verifier", "api")
TASK_ROLES = ("task-worker", "rescuer", "archiver", "retention")
INSTANCES = dict.fromkeys(ROLES, 2) | {"worker": 3}
# "one backend": PostgreSQL restarts itself when one of its processes is killed; MariaDB has one process only.
WAYS_TO_RESTART = ("fast", "immediate", "kill -9", "one backend")


@dataclass(frozen=True)
class Fault:
    """`at` seconds after the beginning; `target` a process, a group of connections, or a way; for so many `seconds`."""

    at: float
    kind: str
    target: str = ""
    seconds: float = 0.0

    def __str__(self) -> str:
        lasting = f"{self.seconds} s" if self.seconds else ""
        return " ".join(filter(None, [f"{self.at:6.2f}", self.kind, self.target, lasting]))


@dataclass(frozen=True)
class Tier:
    """How much is sent and how much is broken, in how many seconds.

    `sometimes`: how often each of `wanted` must have happened, where that is empty everything that can be wanted.
    """

    name: str
    events: int
    tasks: int
    seconds: float
    counts: dict[str, int]
    sometimes: int = 1
    wanted: tuple[str, ...] = ()
    lease: float = 3.0
    archive_after: float = 5.0
    kept: float = 15.0
    roles: tuple[str, ...] = ROLES
    restarts: tuple[str, ...] = WAYS_TO_RESTART
    # How much later than a lease and the longest delay all must have come to its end.
    patience: float = 60.0
    is_shortened: bool = False
    # Events that are not published.
    without: tuple[str, ...] = ()


COMMIT = Tier(
    "commit",
    events=2_000,
    tasks=200,
    seconds=32,
    counts={
        "kill": 12,
        "freeze": 2,
        "freeze task-worker": 2,
        "stop worker": 2,
        "stop task-worker": 1,
        "database": 1,
        "backend": 1,
        "cut database": 2,
        "cut commit": 2,
        "cut producers": 2,
        "freeze database": 1,
        "part database": 1,
        "cut endpoints": 2,
        "freeze endpoints": 1,
        "deadlock": 3,
        "pause": 2,
        "edit": 2,
        "rotate": 2,
        "migrate": 1,
        "requeue": 2,
        "mass requeue": 1,
        "check": 6,
    },
    # After which answers must have been kept, under leases that outlast it: the fourth way is too quick for that.
    restarts=WAYS_TO_RESTART[:3],
    lease=5.0,
)
NIGHTLY = Tier(
    "nightly",
    events=50_000,
    tasks=5_000,
    seconds=1_200,
    counts={
        "kill": 220,
        "freeze": 40,
        "freeze task-worker": 25,
        "stop worker": 20,
        "stop task-worker": 10,
        "database": 20,
        "backend": 10,
        "cut database": 40,
        "cut commit": 40,
        "cut producers": 30,
        "freeze database": 12,
        "part database": 10,
        "cut endpoints": 40,
        "freeze endpoints": 12,
        "deadlock": 25,
        "pause": 12,
        "edit": 20,
        "rotate": 10,
        "migrate": 5,
        "requeue": 20,
        "mass requeue": 5,
        "check": 30,
    },
    sometimes=10,
    # Twenty minutes in which nobody may be thought dead who only had to wait for a processor.
    lease=5.0,
)
SOAK = replace(
    NIGHTLY,
    name="soak",
    events=350_000,
    tasks=35_000,
    seconds=8 * 3600.0,
    counts={kind: 5 * count for kind, count in NIGHTLY.counts.items()},
)
QUIET = Tier("quiet", events=2_000, tasks=200, seconds=14, counts={}, sometimes=0, lease=30.0)
# Those in which planted bugs must be found: each as small as it can be for that.
SMOKE = Tier(
    "smoke",
    events=300,
    tasks=0,
    seconds=6,
    counts={"kill": 4, "cut commit": 1, "requeue": 1},
    sometimes=0,
    roles=DELIVERY_ROLES,
    patience=12.0,
)
# Mostly to slow endpoints, so that whoever freezes has something under way, and something that waits behind it.
WELL = ("well.a", "well.b", "well.c", "well.d", "mixed.a")
ZOMBIES = replace(SMOKE, name="zombies", events=270, seconds=16, counts={"freeze": 8}, without=WELL)
PAUSES = replace(SMOKE, name="pauses", seconds=10, counts={"kill": 2, "pause": 2})
CHECKS = replace(SMOKE, name="checks", events=0, seconds=8, counts={"check": 6}, roles=("verifier", "rescuer", "api"))
TASKS = Tier(
    "tasks",
    events=0,
    tasks=600,
    seconds=9,
    counts={"kill": 10, "freeze task-worker": 2, "cut commit": 1},
    wanted=("task rescued", "task archived", "task removed", "late result of a task refused"),
    # It runs beside other tests, where whoever waits for a processor must not be taken for dead.
    lease=6.0,
    archive_after=0.5,
    kept=2.0,
    roles=TASK_ROLES,
)
MANY_TASKS = replace(
    TASKS,
    name="many-tasks",
    tasks=20_000,
    seconds=120,
    counts={
        "kill": 80,
        "freeze task-worker": 12,
        "stop task-worker": 6,
        "database": 4,
        "backend": 4,
        "cut database": 8,
        "cut commit": 8,
        "part database": 2,
    },
    sometimes=5,
)
TIERS = {tier.name: tier for tier in (COMMIT, NIGHTLY, SOAK, QUIET, SMOKE, ZOMBIES, PAUSES, CHECKS, TASKS, MANY_TASKS)}


def shortened(tier: Tier, seconds: float) -> Tier:
    """The same at the same pace for so long; what must happen need happen only once."""
    share = seconds / tier.seconds
    return replace(
        tier,
        events=round(tier.events * share),
        tasks=round(tier.tasks * share),
        seconds=seconds,
        counts={kind: max(1, round(count * share)) for kind, count in tier.counts.items()},
        sometimes=min(1, tier.sometimes),
        is_shortened=True,
    )


def names_of(role: str) -> list[str]:
    return [f"{role}-{number}" for number in range(1, INSTANCES.get(role, 1) + 1)]


def schedule(tier: Tier, seed: int) -> list[Fault]:
    """All faults of a run, in order. Every role is killed before any of them is killed twice as often as another."""
    chance = random.Random(f"{tier.name}:{seed}")
    while True:
        faults = _drawn(chance, tier, seed)
        if not _spoils_a_zombie(faults):
            return faults


def _drawn(chance: random.Random, tier: Tier, seed: int) -> list[Fault]:
    faults: list[Fault] = []
    kinds = [kind for kind, count in tier.counts.items() for _ in range(count)]
    chance.shuffle(kinds)
    victims = _victims(chance, tier.roles, tier.counts.get("kill", 0))
    restarts = [tier.restarts[(seed + number) % len(tier.restarts)] for number in range(tier.counts.get("database", 0))]
    checks = [_check(number) for number in range(tier.counts.get("check", 0))]
    room = tier.seconds / max(1, len(kinds))
    for number, kind in enumerate(kinds):
        at = round(1.0 + number * room + chance.uniform(0, room * 0.8), 2)
        faults.append(
            Fault(at, kind, checks.pop(0))
            if kind == "check"
            else _fault(chance, at, kind, victims, restarts, tier.lease)
        )
    return faults


def _check(number: int) -> str:
    """By turns: an endpoint that is to prove itself and whose caller is killed, one that is asked twice, a test."""
    turn, way = number // 3 * 2 + min(number % 3, 1), ("verify, killed", "verify, twice", "test, killed")[number % 3]
    return f"{way} {turn}"


def _spoils_a_zombie(faults: list[Fault]) -> bool:
    """In a short run each zombie counts: while the database is away nobody takes its work from it."""
    zombies = [fault for fault in faults if fault.kind == "freeze"]
    away = [fault.at for fault in faults if fault.kind == "database"]
    is_short = len(zombies) < 10
    return is_short and any(one.at - 2 < at < one.at + one.seconds + 2 for one in zombies for at in away)


def _victims(chance: random.Random, roles: tuple[str, ...], count: int) -> list[str]:
    found: list[str] = []
    # A worker once more in each round: what it has under way is what matters most.
    weighed = [*roles, "worker" if "worker" in roles else "task-worker"]
    while len(found) < count:
        found += chance.sample(weighed, len(weighed))
    return [chance.choice(names_of(role)) for role in found[:count]]


def _fault(chance: random.Random, at: float, kind: str, victims: list[str], restarts: list[str], lease: float) -> Fault:
    match kind:
        case "kill":
            return Fault(at, kind, victims.pop())
        case "freeze" | "freeze task-worker":
            role = kind.partition(" ")[2] or "worker"
            return Fault(at, "freeze", role, round(lease + chance.uniform(1.0, 2.0), 2))
        case "stop worker" | "stop task-worker":
            return Fault(at, "stop", chance.choice(names_of(kind.partition(" ")[2])))
        case "database":
            return Fault(at, kind, restarts.pop())
        case "freeze database" | "freeze endpoints":
            return Fault(at, kind, seconds=round(chance.uniform(1.0, 2.5), 2))
        case "part database":
            # Longer than leases last: what its processes had is taken from them.
            return Fault(at, kind, seconds=round(lease + chance.uniform(1.0, 3.0), 2))
        case "pause":
            return Fault(at, kind, f"subscription {chance.randrange(100)}", round(chance.uniform(3.0, 5.0), 2))
        case "edit" | "rotate":
            return Fault(at, kind, f"subscription {chance.randrange(100)}")
        case _:
            return Fault(at, kind)
