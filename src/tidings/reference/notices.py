"""docs/reference/notices.md: every notice with its level, its words and its fields."""

from dataclasses import fields

from tidings.reference.writing import code, head, one_line, table
from tidings.telemetry.log_lines import WORDING
from tidings.telemetry.notices import Notice

_SAYS = """What the system says, on standard error: one line for each notice, for people on a terminal, as JSON
elsewhere (`log_format`, `log_level` in [settings](settings.md)). `event` of a JSON line has the words below, beside
it stand `level`, `timestamp` and the fields. `delivery_status` is added where a notice is about a saga or a job. No
line has a payload or a secret in it. One correlation id leads through all lines of one event: `grep` for it.

Some are made only where somebody listens: those of `debug` cost nothing at the usual level.
"""
_LEVELS = ("error", "warning", "info", "debug")


def notices_reference() -> str:
    """The whole page, the most important first."""
    return "\n".join(
        [
            head("Notices in the log", "src/tidings/telemetry/log_lines.py and notices.py", _SAYS),
            *(_level(level) for level in _LEVELS),
        ]
    )


def _level(level: str) -> str:
    kinds = [(kind, words) for kind, (at, words) in WORDING.items() if at == level]
    rows = [(words, code(kind.__name__), _fields(kind), _says(kind)) for kind, words in kinds]
    return f"## {level}\n\n{table(('words', 'notice', 'fields', 'meaning'), rows)}"


def _fields(kind: type[Notice]) -> str:
    return ", ".join(code(one.name) for one in fields(kind))


def _says(kind: type[Notice]) -> str:
    """Its own docstring; dataclasses without one get a signature for it, and a subclass its parent's."""
    says = one_line(kind.__dict__.get("__doc__"))
    return "" if says.startswith(f"{kind.__name__}(") else says
