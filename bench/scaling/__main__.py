"""Measures what more processes bring: `python -m bench.scaling [--deliveries N] [--engine …] [--json FILE]`.

`tidings run worker --processes N` with one and with two, with real requests and with HTTP stubbed out; and a second
orchestrator. Shown is how many cores each process was busy with: a process of ours can use one, the machine has as many
as it has, and whatever is at its end stands first.
"""

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import uvloop

from bench.courier.sink import running as sink_running
from bench.deliver.run import DATABASE, ORCHESTRATOR, OURS, STUB, WORKER, Case, Result, deliver
from bench.engines import engines, parser_of, write_json
from bench.servers import measured_server
from bench.showing import OF, out, say, table
from bench.usage import MICROSECONDS
from tests.support.database import Database

FAN_OUT = 3
CASES = tuple(
    Case(FAN_OUT, sender=sender, workers=workers, orchestrators=orchestrators)
    for sender in (OURS, STUB)
    for workers, orchestrators in ((1, 1), (2, 1), (2, 2))
)
HEADINGS = ("requests", "workers", "orchestrators", "/s", "× one", "cores", "saturated", OF)
# From here on a process is taken for being at its end.
BUSY = 0.9


@dataclass(frozen=True)
class Scaled:
    """Cores that each process, or each of several, was busy with."""

    result: Result
    cores: dict[str, float]

    @property
    def saturated(self) -> str:
        """Who could do no more; the machine, if all of its cores were busy."""
        case = self.result
        several = {WORKER: case.workers, ORCHESTRATOR: case.orchestrators}
        found = [
            name
            for name, cores in sorted(self.cores.items(), key=lambda one: -one[1])
            if name != DATABASE and cores / several.get(name, 1) >= BUSY
        ]
        all_of_it = sum(self.cores.values()) >= BUSY * (os.cpu_count() or 1)
        return " and ".join([*(["the machine"] if all_of_it else []), *found]) or "nobody"


async def measure(engine: str, deliveries: int, seconds: float) -> list[Scaled]:
    found = []
    with measured_server(engine) as server, sink_running("auto") as sink:
        database = Database(server)
        await database.migrate()
        for case in CASES:
            say(f"{engine}: {case.name}")
            result = await deliver(database, sink, case, deliveries, seconds)
            found.append(Scaled(result, {name: one * result.rate / MICROSECONDS for name, one in result.cpu.items()}))
    return found


def rows(found: Sequence[Scaled]) -> list[Sequence[str]]:
    alone = {one.result.sender: one.result.rate for one in found if one.result.workers == 1}
    return [
        (
            "stubbed" if one.result.sender == STUB else "real",
            str(one.result.workers),
            str(one.result.orchestrators),
            f"{one.result.rate:,.0f}",
            f"{one.result.rate / alone[one.result.sender]:.2f}",
            f"{sum(one.cores.values()):.2f}",
            one.saturated,
            ", ".join(f"{name} {cores:.2f}" for name, cores in one.cores.items() if cores >= 0.01),
        )
        for one in found
    ]


def main() -> None:
    parser = parser_of("scaling", "Measures what more processes bring.")
    parser.add_argument("--deliveries", type=int, default=30_000, help="in each case")
    parser.add_argument("--seconds", type=float, default=120, help="for each case, at most")
    options = parser.parse_args()
    figures: dict[str, Any] = {}
    for engine in engines(options.engine):
        found = uvloop.run(measure(engine, options.deliveries, options.seconds))
        out.print(table(f"{engine}: fan-out {FAN_OUT}, processes of the worker", HEADINGS, rows(found)))
        figures[engine] = [asdict(one.result) | {"rate": one.result.rate, "cores": one.cores} for one in found]
    write_json(options.json, figures)


if __name__ == "__main__":
    main()
