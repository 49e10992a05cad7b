"""The overview: what flows, how much waits in each stage, and what is wrong."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from starlette.responses import RedirectResponse, Response

from tidings.console.charts import Span, Stage, ceiling, flow_picture, spans, stacked
from tidings.console.declaring import get
from tidings.console.languages import Words
from tidings.console.page import Page
from tidings.console.saying import duration
from tidings.console.showing import number
from tidings.model.depths import Depth, Depths
from tidings.model.totals import OUTCOMES
from tidings.roles.observer.depths import DepthObserver
from tidings.roles.observer.flowing import FlowObserver
from tidings.roles.observer.routing import RoutingObserver

# What is more than this, is more: nobody waits for a count.
COUNTED_TO = 1_000
_DAY = 24 * 60
_SECONDS_FAILING = 2 * 3600.0
_MOST_FAILING = 8
_WIDTH, _HEIGHT = 960.0, 150.0
# From when on waiting is worth a look, and from when on it is wrong.
_SECONDS_LONG, _SECONDS_TOO_LONG = 60.0, 600.0
# Without these nothing is delivered.
_NEEDED = ("router", "orchestrator", "worker", "cleaner")


@dataclass(frozen=True)
class Range:
    """How much a chart shows, in minutes, and how many each of its columns stands for."""

    name: str
    minutes: int
    each: int


RANGES = (Range("hour", 60, 1), Range("day", _DAY, 15), Range("three_days", 3 * _DAY, 60))


async def index(page: Page) -> Response:
    if page.own:
        return RedirectResponse("/events", 303)
    return page.show("overview/index.html", **await _seen(page))


async def live(page: Page) -> Response:
    return page.show("overview/live.html", **await _seen(page))


async def _seen(page: Page) -> dict[str, Any]:
    chosen = next((one for one in RANGES if one.name == page.query["range"]), RANGES[0])
    flow = await page.read(FlowObserver, lambda see: see.flow(chosen.minutes, chosen.each))
    columns = spans(flow.counts, flow.now, chosen.minutes, chosen.each, len(OUTCOMES))
    depths = await page.read(DepthObserver, lambda see: see.depths(COUNTED_TO))
    last_event = await page.read(FlowObserver, FlowObserver.last_event)
    totals = dict(zip(OUTCOMES, map(sum, zip(*(one.counts for one in columns), strict=True)), strict=True))
    stages = _stages(page, depths, last_event, totals, chosen)
    return {
        "ranges": RANGES,
        "chosen": chosen,
        "chart": _chart(columns, chosen),
        "totals": totals,
        "pictures": {"wide": flow_picture(stages), "tall": flow_picture(stages, is_tall=True)},
        "retrying": _counted(depths.queues["sagas_retry_later"].count),
        "depths": depths,
        "is_new": last_event is None,
        "processes": _processes(depths),
        "gates": await page.read(RoutingObserver, RoutingObserver.gates),
        "failing": await page.read(FlowObserver, lambda see: see.failing(_SECONDS_FAILING, _MOST_FAILING)),
        "counted": _counted,
    }


def _chart(columns: list[Span], chosen: Range) -> Mapping[str, Any]:
    counts = [one.counts for one in columns]
    return {
        "columns": columns,
        "bars": dict(zip(OUTCOMES, stacked(counts, _WIDTH, _HEIGHT), strict=True)),
        "top": ceiling(max(map(sum, counts))),
        "labels": _labels(columns, chosen),
        "width": _WIDTH,
        "height": _HEIGHT,
        "step": _WIDTH / len(columns),
    }


def _labels(columns: list[Span], chosen: Range) -> list[str]:
    """Five moments below the chart, evenly apart."""
    form = "%d.%m. %H:%M" if chosen.minutes > _DAY else "%H:%M"
    return [columns[len(columns) * part // 4 if part < 4 else -1].began_at.strftime(form) for part in range(5)]


def _stages(page: Page, depths: Depths, last_event: Any, totals: Mapping[str, int], chosen: Range) -> dict[str, Stage]:
    say, queues = page.words, depths.queues
    in_range = say(f"overview.range.{chosen.name}")
    due = _sum((one.count, one.oldest_seconds) for one in (queues["sagas_pending"], queues["sagas_retry_due"]))
    sending = Depth(queues["jobs_leased"].count, 0.0)
    delivered = say("overview.stage.delivered", count=number(totals["delivered"]), range=in_range)
    return {
        "events": _newest(page, last_event),
        "router": _stage(say, "router", _sum((one.events, one.oldest_seconds) for one in depths.routers), "/routing"),
        "sagas": _stage(say, "sagas", due, "/events"),
        "jobs": _stage(say, "jobs", queues["jobs_pending"], "/subscriptions"),
        "endpoints": _stage(say, "endpoints", sending, "/subscriptions", delivered),
        "dead": Stage(
            say("overview.stage.dead"),
            number(totals["dead"]),
            say("overview.stage.in_range", range=in_range),
            "bad" if totals["dead"] else "quiet",
            "/dead-letters",
        ),
        "tasks": _stage(say, "tasks", _sum((one.due, one.oldest_seconds) for one in depths.tasks), "/tasks"),
    }


def _newest(page: Page, last_event: Any) -> Stage:
    say = page.words
    if not last_event:
        return Stage(say("overview.stage.events"), "–", "", "quiet", "/events")
    since = duration(max(0.0, page.ago(last_event["created_at"])), say.language)
    note = say("shared.ago", duration=since)
    return Stage(say("overview.stage.events"), f"#{last_event['id']}", note, "quiet", "/events")


def _stage(say: Words, name: str, depth: Depth, href: str, note: str = "") -> Stage:
    """Without another note it tells for how long the oldest waits."""
    if not note and depth.oldest_seconds:
        note = say("overview.stage.oldest", duration=duration(depth.oldest_seconds, say.language))
    return Stage(say(f"overview.stage.{name}"), _counted(depth.count), note, _tone(depth), href)


def _processes(depths: Depths) -> list[tuple[str, int, bool]]:
    """Name, how many are alive, and whether one is missing."""
    names = [*_NEEDED, *sorted(set(depths.processes) - set(_NEEDED))]
    return [(name, depths.processes.get(name, 0), name in _NEEDED and not depths.processes.get(name)) for name in names]


def _sum(parts: Iterable[tuple[int, float]]) -> Depth:
    """Of counts, and for how long the oldest of each has waited."""
    found = [*parts]
    return Depth(sum(count for count, _ in found), max((seconds for _, seconds in found), default=0.0))


def _counted(count: int) -> str:
    return f"{number(COUNTED_TO)}+" if count >= COUNTED_TO else number(count)


def _tone(depth: Depth) -> str:
    if not depth.count:
        return "quiet"
    if depth.oldest_seconds > _SECONDS_TOO_LONG:
        return "bad"
    return "warn" if depth.oldest_seconds > _SECONDS_LONG else "busy"


routes = [
    get("/", index),
    get("/overview/live", live, of_all_domains=True, polled=True),
]
