"""What others have written down during a run: producers, receivers, handlers, who broke things, who gave orders."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Line = dict[str, Any]
# How the webhook ids of calls begin that somebody asked for: a challenge, and a test.
CALLS = ("vrf_", "tst_")


@dataclass(frozen=True)
class Request:
    """One request as its receiver has written it down, before it said anything. `says` None: it never answered."""

    at: float
    path: str
    message: str
    timestamp: str
    signature: str
    correlation_id: str
    event_type: str
    attempt: int
    body: str
    says: int | None

    @property
    def went_well(self) -> bool:
        return self.says is not None and 200 <= self.says < 300


@dataclass(frozen=True)
class Subscription:
    """`event_type` may end with a star. `secrets`: since when each is in force, the first one from the beginning.

    All of them stay valid to the end of a run.
    """

    id: int
    path: str
    kind: str
    event_type: str
    max_retry_limit: int
    relayed: bool
    secrets: tuple[tuple[float, str], ...]

    def wants(self, event_type: str) -> bool:
        if self.event_type.endswith("*"):
            return event_type.startswith(self.event_type[:-1])
        return event_type == self.event_type


@dataclass(frozen=True)
class Broken:
    """Something that was broken on purpose, from `at` `until`; `pid` where it was one process, else it hit many.

    Or a stall of the whole machine, which was nobody's purpose.
    `back`: when a server that was away was started again; until then nobody could reach it.
    """

    kind: str
    at: float
    until: float
    pid: int | None = None
    back: float | None = None

    def hits(self, pid: int | None, begin: float, end: float) -> bool:
        return self.pid in (None, pid) and self.at <= end and begin <= self.until


@dataclass
class Ledgers:
    folder: Path
    events: dict[str, Line] = field(default_factory=dict)
    doubtful: dict[str, Line] = field(default_factory=dict)
    rolled_back: dict[str, Line] = field(default_factory=dict)
    tasks: dict[str, Line] = field(default_factory=dict)
    doubtful_tasks: dict[str, Line] = field(default_factory=dict)
    requests: list[Request] = field(default_factory=list)
    calls: list[Request] = field(default_factory=list)
    runs: list[Line] = field(default_factory=list)
    broken: list[Broken] = field(default_factory=list)
    orders: list[Line] = field(default_factory=list)
    subscriptions: dict[int, Subscription] = field(default_factory=dict)
    limits: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_quiet(self) -> bool:
        """Nothing was broken on purpose."""
        return all(one.kind == "stall" for one in self.broken)

    def explain(self, kinds: tuple[str, ...], pid: int | None, begin: float, end: float) -> bool:
        return any(one.kind in kinds and one.hits(pid, begin, end) for one in self.broken)


def read_ledgers(folder: Path) -> Ledgers:
    found = Ledgers(folder, limits=json.loads((folder / "limits.json").read_text("utf-8")))
    for line in _lines(folder / "produced.jsonl"):
        _take_in(found, line)
    for line in _lines(folder / "received.jsonl"):
        one = Request(**line)
        (found.calls if one.message.startswith(CALLS) else found.requests).append(one)
    found.runs = [*_lines(folder / "runs.jsonl")]
    found.orders = [*_lines(folder / "orders.jsonl")]
    found.broken = [Broken(**line) for line in _lines(folder / "broken.jsonl")]
    for line in json.loads((folder / "subscriptions.json").read_text("utf-8")):
        secrets = tuple((since, secret) for since, secret in line.pop("secrets"))
        rotated = tuple(
            (one["at"], one["secret"])
            for one in found.orders
            # One whose outcome nobody knows has none: it may be in force or not.
            if one.get("secret") and one["subscription"] == line["id"]
        )
        found.subscriptions[line["id"]] = Subscription(**line, secrets=secrets + rotated)
    return found


def _take_in(found: Ledgers, line: Line) -> None:
    match line["kind"], line["outcome"]:
        case "event", "committed":
            found.events[line["correlation_id"]] = line
        case "event", "in doubt":
            found.doubtful[line["correlation_id"]] = line
        case "event", _:
            found.rolled_back[line["correlation_id"]] = line
        case "task", "committed":
            found.tasks[line["biz_key"]] = line
        case "task", "in doubt":
            found.doubtful_tasks[line["biz_key"]] = line


def _lines(path: Path) -> Iterator[Line]:
    if path.exists():
        with path.open(encoding="utf-8") as file:
            for text in file:
                # The last line of somebody who was killed may be half of one.
                if text.endswith("\n"):
                    yield json.loads(text)
