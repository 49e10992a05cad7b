"""Measures our queue of tasks beside others: `python -m bench.peers [--tasks N] [--singly N] [--peer NAME]`.

The same work, tasks that do nothing, on the same PostgreSQL in one run: ours with and without all that users have on,
graphile-worker with its local queue, pgqueuer in batches, procrastinate. Each is set up as its own documentation says
for speed. Peers are fetched from PyPI and npm the first time.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import asdict

from bench.engines import conclude, parser_of
from bench.peers.racing import AS_USED, MOST, PEERS, SINGLY, Racer, ours, peer
from bench.servers import measured_server
from bench.showing import out, say, table
from bench.targets import PEERS as TARGETS
from bench.targets import Verdict, judge
from tests.support.database import Database
from tidings.cli.running import run_in_loop

HEADINGS = ("", "version", "tasks", "one by one /s", "in bulk /s", "drained /s", "ours ÷ it")


def race(tasks: int, singly: int, peers: Sequence[str]) -> list[Racer]:
    with measured_server("postgresql") as server:
        database = Database(server)
        asyncio.run(database.migrate())
        say("ours")
        found = run_in_loop(ours(database, tasks, singly))
        for name in peers:
            say(name)
            if one := peer(database, name, tasks, singly):
                found.append(one)
            else:
                say(f"{name} can't be run here: it needs Node and npm")
    return found


def as_used(found: Sequence[Racer]) -> float:
    (rate,) = (one.drain for one in found if one.name == AS_USED)
    return rate


def rows(found: Sequence[Racer]) -> list[Sequence[str]]:
    used = as_used(found)
    return [
        (
            one.name,
            one.version,
            f"{one.tasks:,}",
            "" if one.single is None else f"{one.single:,.0f}",
            "" if one.bulk is None else f"{one.bulk:,.0f}",
            f"{one.drain:,.0f}",
            f"{used / one.drain:.1f}",
        )
        for one in found
    ]


def verdicts(found: Sequence[Racer]) -> list[Verdict]:
    """By what users have, not by the fastest that there is."""
    used = as_used(found)
    return judge("postgresql", [(TARGETS[one.name], used / one.drain) for one in found if one.name in TARGETS])


def main() -> None:
    parser = parser_of("peers", "Measures our queue of tasks beside others.", of_engines=False)
    parser.add_argument("--tasks", type=int, default=50_000, help=f"for each that is fast enough, {MOST:,} at most")
    parser.add_argument("--singly", type=int, default=SINGLY, help="how many of them are enqueued one by one")
    parser.add_argument("--peer", choices=[*PEERS], action="append", help="only this one; repeat it for more")
    options = parser.parse_args()
    found = race(options.tasks, options.singly, options.peer or [*PEERS])
    out.print(table("Tasks in a second, on one PostgreSQL", HEADINGS, rows(found), texts=2))
    conclude(options.json, {"racers": [asdict(one) for one in found]}, verdicts(found))


if __name__ == "__main__":
    main()
