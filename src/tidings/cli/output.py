"""How the command line speaks: tables for people, JSON for machines, progress on a terminal, errors that help."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from tidings.errors import TidingsError
from tidings.telemetry.bus import listening
from tidings.telemetry.notices import MigrationStepApplied, Notice

out = Console(highlight=False, soft_wrap=True)
err = Console(stderr=True, highlight=False, soft_wrap=True)


def show_json(value: Any) -> None:
    out.print_json(json.dumps(value))


def show_error(error: TidingsError) -> None:
    err.print(f"[red]tidings:[/] {_plain(error.what)}", markup=True)
    if error.remedy:
        err.print(f"  → {error.remedy}", markup=False)


def _plain(text: str) -> str:
    return text.replace("[", "\\[")


def say(sentence: str) -> None:
    """To people, on stderr: what a program reads goes to stdout alone."""
    err.print(sentence, style="dim", markup=False)


@contextmanager
def migration_progress(total: int) -> Iterator[None]:
    """A bar that moves with each step of a migration; nothing where nobody watches."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal or not total) as progress:
        bar = progress.add_task("migrating", total=total)

        def step(notice: Notice) -> None:
            if isinstance(notice, MigrationStepApplied):
                progress.update(bar, advance=1, description=f"migrating: {notice.step}")

        with listening(step):
            yield


@contextmanager
def requeue_progress(total: int) -> Iterator[Callable[[int], None]]:
    """How many of the dead letters have been gone through."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as progress:
        bar = progress.add_task("requeueing", total=total)
        yield lambda handled: progress.update(bar, completed=handled)


@contextmanager
def replay_progress() -> Iterator[Callable[[int, int], None]]:
    """Counts past events while they are gone through; how many there are nobody knows before."""
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as progress:
        bar = progress.add_task("replaying", total=None)

        def show(looked_at: int, made: int) -> None:
            progress.update(bar, description=f"replaying: {looked_at:,} events, {made:,} to be sent")

        yield show


@contextmanager
def counting_progress(doing: str, things: str) -> Iterator[Callable[[int, int], None]]:
    """A bar for work whose size is known when it begins: told how many are done, and of how many."""
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as progress:
        bar = progress.add_task(doing, total=None)

        def show(done: int, total: int) -> None:
            progress.update(bar, completed=done, total=total, description=f"{doing}: {done:,} {things}")

        yield show
