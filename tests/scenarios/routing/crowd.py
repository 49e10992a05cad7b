"""Producers that run freely, each at its own pace; also a program, so that a whole crowd of them can be killed."""

import argparse
import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random

from tests.scenarios.routing.journal import Journal
from tests.scenarios.routing.obstacles import Sleeps
from tests.scenarios.routing.producing import Left, Mix, Producer
from tests.scenarios.routing.words import WORDS
from tests.support.processes import Process
from tests.support.waiting import pause

LONGEST_HANG = 0.3
DOMAINS = ("default", "billing")
ROOT = Path(__file__).parents[3]


class Crowd:
    """So many producers in one process, which write about `pace` events a second together."""

    def __init__(
        self, name: str, kind: str, url: str, seed: int, journal: Journal, *, size: int, pace: float, mix: Mix
    ) -> None:
        self._chance = Random(seed)
        self._seconds_for_one = size / pace
        left: list[Left] = []
        words = WORDS[kind]
        obstacle = Sleeps(words, self._chance, LONGEST_HANG).put_up
        self._producers = [
            Producer(f"{name}-{n}", url, words, self._own(), journal, obstacle, left, domains=DOMAINS, mix=mix)
            for n in range(size)
        ]
        self.long = Producer(f"{name}-long", url, words, self._own(), journal, obstacle, left)

    async def write(self) -> None:
        """Until it is enough for everybody."""
        async with asyncio.TaskGroup() as everybody:
            for producer in self._producers:
                everybody.create_task(self._follow(producer.transactions()))

    async def write_long(self) -> None:
        """One transaction that outlasts those of the others, until it is enough for it."""
        await self._follow(self.long.one_long_transaction(), rest=0.2)

    def enough(self) -> None:
        for producer in self._producers:
            producer.enough = True

    async def leave(self) -> None:
        for producer in (*self._producers, self.long):
            await producer.leave()

    async def _follow(self, stream: AsyncIterator[int], rest: float = 0.01) -> None:
        async for count in stream:
            thinking = self._chance.choice([0, 0, rest / 10, rest])
            await pause(thinking + count * self._seconds_for_one * self._chance.uniform(0, 2))

    def _own(self) -> Random:
        return Random(self._chance.random())


def crowd_process(
    name: str, kind: str, url: str, seed: int, path: Path, *, size: int, pace: float, rows: int
) -> Process:
    """A crowd that is a process of its own, and writes its journal into this file."""
    options = {"name": name, "kind": kind, "url": url, "seed": seed, "journal": path, "size": size, "pace": pace}
    arguments = [f"--{option}={value}" for option, value in {**options, "rows": rows}.items()]
    return Process([sys.executable, "-m", "tests.scenarios.routing.crowd", *arguments], cwd=ROOT)


def main() -> None:
    parser = argparse.ArgumentParser()
    for option, kind in {"name": str, "kind": str, "url": str, "seed": int, "journal": Path}.items():
        parser.add_argument(f"--{option}", type=kind, required=True)
    for option, number in {"size": int, "pace": float, "rows": int}.items():
        parser.add_argument(f"--{option}", type=number, required=True)
    given = parser.parse_args()
    with given.journal.open("a", buffering=1) as file:
        journal = Journal(write=file.write)
        mix = Mix(rows=given.rows)
        crowd = Crowd(given.name, given.kind, given.url, given.seed, journal, size=given.size, pace=given.pace, mix=mix)
        asyncio.run(_until_told(crowd))


async def _until_told(crowd: Crowd) -> None:
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, crowd.enough)
    await crowd.write()
    await crowd.leave()


if __name__ == "__main__":
    main()
