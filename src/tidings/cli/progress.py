"""Bars that move while long work is done; nothing where nobody watches."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from tidings.cli.output import err
from tidings.telemetry.bus import listening
from tidings.telemetry.notices import MigrationStepApplied, Notice


@contextmanager
def migration_progress(total: int) -> Iterator[None]:
    """Moves with each step of a migration."""
    with _bar("migrating", total, is_shown=bool(total)) as move:

        def step(notice: Notice) -> None:
            if isinstance(notice, MigrationStepApplied):
                move(advance=1, description=f"migrating: {notice.step}")

        with listening(step):
            yield


@contextmanager
def requeue_progress(total: int) -> Iterator[Callable[[int], None]]:
    """How many of the dead letters have been gone through."""
    with _bar("requeueing", total) as move:
        yield lambda handled: move(completed=handled)


@contextmanager
def replay_progress() -> Iterator[Callable[[int, int], None]]:
    """Counts past events while they are gone through; how many there are nobody knows before."""
    with _bar("replaying", None) as move:
        yield lambda looked_at, made: move(description=f"replaying: {looked_at:,} events, {made:,} to be sent")


@contextmanager
def counting_progress(doing: str, things: str) -> Iterator[Callable[[int, int], None]]:
    """For work whose size is known when it begins: told how many are done, and of how many."""
    with _bar(doing, None) as move:
        yield lambda done, total: move(completed=done, total=total, description=f"{doing}: {done:,} {things}")


@contextmanager
def _bar(doing: str, total: int | None, *, is_shown: bool = True) -> Iterator[Callable[..., None]]:
    counted = [] if total is None else [MofNCompleteColumn()]
    columns = (TextColumn("{task.description}"), BarColumn(), *counted, TimeElapsedColumn())
    with Progress(*columns, console=err, transient=True, disable=not (err.is_terminal and is_shown)) as progress:
        yield partial(progress.update, progress.add_task(doing, total=total))
