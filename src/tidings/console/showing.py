"""How values are written on a page: templates, and the filters they use. Everything foreign is text there."""

import datetime
import json
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, pass_context
from jinja2.runtime import Context

from tidings.console import assets, charts
from tidings.console.languages import DEFAULT, LANGUAGES

TEMPLATES = Path(__file__).parent / "templates"
_TONES = {
    "good": "completed delivered sent passed open success done verified active ok alive signed_in",
    "bad": "deadlettered dead failed timeout blocked closed revoked refused unverified error",
    "warn": "pendingretry retry retrying paused held expired outdated probing dry_run skipped cancelled",
    "busy": "inprogress leased running processing pending due waiting",
}
_UNITS = {"en": ("ms", "s", "min", "h", "d"), "zh-Hant": ("毫秒", "秒", "分", "小時", "天")}
_TONE_OF = {status: tone for tone, statuses in _TONES.items() for status in statuses.split()}


@cache
def environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "tone": tone,
        "number": number,
        "duration": _duration,
        "moment": moment,
        "iso": iso,
        "json_text": json_text,
        "shortened": shortened,
    }
    made.globals |= {"asset": assets.address, "languages": LANGUAGES, "charts": charts}
    return made


def tone(status: Any) -> str:
    """Which colour a status has: good, bad, warn, busy or quiet."""
    return _TONE_OF.get(str(status).lower(), "quiet")


def number(value: Any) -> str:
    """With a thin space between thousands, which no language reads as anything else."""
    if isinstance(value, float) and not value.is_integer():
        return f"{value:,.1f}".replace(",", "\u202f")
    return f"{int(value):,}".replace(",", "\u202f")


def duration(seconds: Any, language: str = DEFAULT) -> str:
    """The two biggest parts: 85 ms, 3.2 s, 4 min, 2 h 5 min, 3 d 4 h."""
    value = float(seconds)
    ms, s, min, h, d = _UNITS[language]
    if value < 1:
        return f"{value * 1000:.0f} {ms}"
    if value < 60:
        return f"{value:.1f} {s}".replace(".0", "") if value < 10 else f"{value:.0f} {s}"
    minutes, hours, days = int(value // 60), int(value // 3600), int(value // 86_400)
    if minutes < 60:
        return f"{minutes} {min}"
    if hours < 24:
        return f"{hours} {h} {minutes % 60} {min}" if minutes % 60 else f"{hours} {h}"
    return f"{days} {d} {hours % 24} {h}" if hours % 24 else f"{days} {d}"


@pass_context
def _duration(context: Context, seconds: Any) -> str:
    """In the language of the page."""
    return duration(seconds, context["page"].words.language)


def moment(value: datetime.datetime) -> str:
    return value.astimezone(datetime.UTC).strftime("%Y-%m-%d %H:%M:%S")


def iso(value: datetime.datetime) -> str:
    return value.astimezone(datetime.UTC).isoformat()


def json_text(value: Any) -> str:
    """JSON laid out for reading: of a text that is JSON, or of a value. What is no JSON stays as it is."""
    try:
        read = json.loads(value) if isinstance(value, str | bytes) else value
        return json.dumps(read, indent=2, ensure_ascii=False, default=str)
    except (ValueError, RecursionError):
        return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def shortened(text: Any, most: int = 60) -> str:
    whole = str(text)
    return whole if len(whole) <= most else f"{whole[: most - 1]}…"
