"""Producers, routers and the server run freely and are killed at random: nothing is skipped, doubled, or waits.

A failing run tells its seed; the seed repeats who does what, not the timing.
"""

from pathlib import Path

import pytest

from tests.scenarios.routing.free_running import WHOLE_RUN, FreeRun, Report, Scale
from tests.scenarios.routing.seeds import chosen_seed, repeat
from tests.scenarios.routing.stage import Ledger, few, looking_at
from tests.scenarios.routing.words import WORDS
from tests.support.database import Database

EVENTS = 10_000
MANY_EVENTS = 1_000_000
USUAL = Scale(events=EVENTS, pace=900, rows=60, crashes=2)
FULL = Scale(events=MANY_EVENTS, pace=2_000, rows=400, crashes=2, within=3_000)

# Everything that producers must have done somewhere in a run; a kind that never worked would make it blind.
KINDS = {
    *("single", "one", "several", "selected", "hung", "commit", "rollback", "savepoint", "inside a savepoint"),
    *("rollback to savepoint", "release savepoint", "duplicate", "ignored", "killed", "vanish", "long"),
    *("prepare", "left prepared", "finished by another", "commit prepared", "rollback prepared"),
}
# Fewer delays have no 99th percentile.
ENOUGH_DELAYS = 100


async def expect_all_routed_once(database: Database, scale: Scale, folder: Path) -> None:
    seed = chosen_seed()
    try:
        report = await FreeRun(database, seed, scale, folder).run()
        async with looking_at(database) as ledger:
            await expect_a_run_with_eyes(report, ledger, scale)
            verdict = await ledger.verdict()
            assert not verdict, verdict
            assert not report.waiting_for_the_long_one, few(report.waiting_for_the_long_one)
            await expect_no_waiting(report, ledger, database.kind)
    except BaseException as error:
        error.add_note(repeat(seed))
        raise


async def expect_a_run_with_eyes(report: Report, ledger: Ledger, scale: Scale) -> None:
    """The run did what it is meant to do, and a reader with the usual mistakes fails in it."""
    journal = report.journal
    assert not journal.unexpected_errors()
    assert journal.done.keys() >= KINDS, f"never done: {KINDS - journal.done.keys()}"
    assert report.killed.count("server") == scale.crashes
    assert {"router", "backend"} <= {*report.killed}
    tags = await ledger.tags()
    assert len(tags) >= scale.events
    lost = {id for commit in journal.commits for id in commit.ids if tags.get(id) != commit.tag}
    assert not lost, f"the server lost what it had committed: {few(lost)}"
    undone = {id for id, tag in tags.items() if tag in {*journal.undone}}
    assert not undone, f"the server kept what was undone: {few(undone)}"
    assert WHOLE_RUN in tags.values()
    assert journal.late(), "blind: nothing was committed late"
    assert tags.keys() - report.seen_by_last_id, "blind: reading by last id passes"
    assert tags.keys() - report.seen_by_forgetful, "blind: giving up holes passes"


async def expect_no_waiting(report: Report, ledger: Ledger, kind: str) -> None:
    """Events are routed within a second of their commit, while a long and a prepared transaction are open."""
    routed_at = await ledger.routed_at(WORDS[kind])
    delays = sorted(
        max(routed_at[id] for id in commit.ids) - commit.done
        for commit in report.journal.commits
        if not report.is_near_outage(commit.done)
    )
    assert len(delays) >= ENOUGH_DELAYS, f"blind: only {len(delays)} transactions were measured"
    assert delays[int(len(delays) * 0.99)] <= 1.0, f"of {len(delays)} transactions the slowest took {delays[-20:]} s"


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_nothing_is_skipped_or_doubled_or_waits_whoever_is_killed(private: Database, tmp_path: Path) -> None:
    await expect_all_routed_once(private, USUAL, tmp_path)


@pytest.mark.full
@pytest.mark.timeout(7200)
async def test_nothing_is_skipped_or_doubled_among_a_million(private: Database, tmp_path: Path) -> None:
    await expect_all_routed_once(private, FULL, tmp_path)
