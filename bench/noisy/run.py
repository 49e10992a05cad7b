"""The cases: good endpoints alone, beside hanging ones, beside a paused one; and one endpoint that comes back."""

import asyncio
from dataclasses import dataclass

from bench.backlog import SAGAS
from bench.noisy.sink import TENTHS
from bench.noisy.stage import Stage, stage
from bench.quantiles import quantile
from tests.support.database import Database
from tests.support.engine_words import Words

GOOD_BACKLOG_PER_SECOND = 5_000
_WARM_UP = 2.0


@dataclass(frozen=True)
class Case:
    name: str
    good: int
    bad: int = 0
    paused: bool = False


@dataclass(frozen=True)
class Result:
    """Of the good endpoints: requests per second with a backlog, and seconds from commit to request with a trickle.

    `bad` is how many requests went to bad ones, `bad_at_once` how many of them hung at a time. Memory in bytes.
    """

    case: str
    backlog: int
    rate: float
    p50: float
    p99: float
    bad: int
    bad_at_once: int
    memory: dict[str, int]


@dataclass(frozen=True)
class ComeBack:
    """Seconds until the endpoint got nine tenths of its full rate, and how many requests it got in the first second."""

    backlog: int
    seconds: float
    rate: float
    first_second: int
    memory: dict[str, int]


CASES = (
    Case("10 good", good=9),
    Case("1 of 10 hangs", good=9, bad=1),
    Case("1 of 10 paused", good=9, bad=1, paused=True),
    Case("400 good", good=400),
    Case("100 of 500 hang", good=400, bad=100),
)
# With which of them each is compared.
ALONE = {"1 of 10 hangs": "10 good", "1 of 10 paused": "10 good", "100 of 500 hang": "400 good"}


async def measure(database: Database, case: Case, backlog: int, seconds: float, timeout: float) -> Result:
    async with stage(database, case.good, case.bad, timeout, case.paused) as one:
        await one.backlog(backlog if case.bad else 0, bad=True)
        await _analyse(one)
        async with one.roles():
            await one.trickle(_WARM_UP)
            await one.report()
            await one.trickle(seconds)
            await asyncio.sleep(1)
            slow = await one.report()
            await one.backlog(round(GOOD_BACKLOG_PER_SECOND * seconds), bad=False)
            await asyncio.sleep(_WARM_UP)
            before = await one.report()
            await asyncio.sleep(seconds)
            busy = await one.report()
        return Result(
            case.name,
            backlog if case.bad else 0,
            busy["good"] / busy["seconds"],
            quantile(slow["latencies"], 0.5),
            quantile(slow["latencies"], 0.99),
            sum(found["bad"] for found in (slow, before, busy)),
            max(found["most_bad_at_once"] for found in (slow, before, busy)),
            one.most_memory,
        )


async def come_back(database: Database, backlog: int, seconds: float, timeout: float) -> ComeBack:
    """After an hour of failures, as its row says, and some more of them."""
    async with stage(database, 1, 1, timeout, paused=False) as one:
        await one.backlog(backlog, bad=True)
        await one.run(
            "INSERT INTO delivery_lanes (subscription_id, window_size, failures, last_error_code)"
            " VALUES (1, 1, 900, 'timeout')"
        )
        await _analyse(one)
        async with one.roles():
            await asyncio.sleep(2 * timeout + 1)
            await one.report()
            await one.tell("up")
            await asyncio.sleep(seconds)
            found = await one.report()
        tenths = dict(found["timeline"])
        rates = [sum(tenths.get(at + tenth, 0) for tenth in range(TENTHS)) for at in range(round(seconds - 1) * TENTHS)]
        full = quantile(rates, 0.9)
        reached = next(at for at, rate in enumerate(rates) if rate >= 0.9 * full) + TENTHS
        return ComeBack(backlog, reached / TENTHS, full, rates[0], one.most_memory)


async def _analyse(one: Stage) -> None:
    """As a server does by itself after a while."""
    for table in ("events", "subscriptions", SAGAS):
        await one.run(Words(one.database).analyse(table))
