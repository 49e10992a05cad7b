"""How values are written on a page: templates, and the filters they use. Everything foreign is text there."""

import datetime
import json
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, pass_context
from jinja2.runtime import Context

from tidings.console import assets
from tidings.console.languages import LANGUAGES
from tidings.console.saying import duration, translated

TEMPLATES = Path(__file__).parent / "templates"
_TONES = {
    "good": "completed sent passed open success done verified active signed_in",
    "bad": "deadlettered failed timeout blocked closed revoked refused unverified",
    "warn": "pendingretry retrying paused held expired outdated dry_run skipped cancelled",
    "busy": "inprogress leased running pending waiting",
}
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
        "answer": _answer,
        "moment": moment,
        "iso": iso,
        "json_text": json_text,
        "shortened": shortened,
    }
    made.globals |= {"asset": assets.address, "languages": LANGUAGES}
    return made


def tone(status: Any) -> str:
    """Which colour a status has: good, bad, warn, busy or quiet."""
    return _TONE_OF.get(str(status).lower(), "quiet")


def number(value: Any) -> str:
    """With a thin space between thousands, which no language reads as anything else."""
    if isinstance(value, float) and not value.is_integer():
        return f"{value:,.1f}".replace(",", "\u202f")
    return f"{int(value):,}".replace(",", "\u202f")


@pass_context
def _duration(context: Context, seconds: Any) -> str:
    """In the language of the page."""
    return duration(seconds, context["page"].words.language)


@pass_context
def _answer(context: Context, text: str) -> str:
    """A sentence of `why`, in the language of the page."""
    return translated(context["page"].words, "why", text)


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
