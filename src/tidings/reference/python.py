"""docs/reference/python.md: what `import tidings` offers, by its signatures and docstrings."""

import inspect
from collections.abc import Iterator
from enum import Enum
from typing import Any

import tidings
from tidings.reference.writing import head, one_line

_SAYS = """Everything that `import tidings` offers to applications and receivers. Nothing is loaded before it is
used. How it is used is told in the guide: [publish](../guide/publish.md), [tasks](../guide/tasks.md),
[receivers](../guide/receivers.md), [the HTTP API from Python](../guide/python-client.md).
"""
_CHAPTERS = {
    "In your own transaction": ("publish", "publish_many", "Event", "Published", "EventLimits"),
    "Tasks": (
        "submit_task",
        "submit_tasks",
        "NewTask",
        "Submitted",
        "TaskStatus",
        "task",
        "TaskContext",
        "Retry",
        "Fail",
    ),
    "Receiving": ("verify", "answer_challenge"),
    "The HTTP API from elsewhere": ("Client", "AsyncClient", "ApiError", "ApiUnreachable"),
    "Errors": ("TidingsError", "EventRefused", "TaskRefused", "SignatureRefused"),
}


def python_reference() -> str:
    """The whole page; a name that stands in no chapter is an error."""
    if left_out := set(tidings.__all__) ^ {name for names in _CHAPTERS.values() for name in names}:
        raise ValueError(f"tidings.__all__ and the chapters of the reference differ in {sorted(left_out)}")
    lines = [head("Python", "the signatures and docstrings of `tidings`", _SAYS)]
    for chapter, names in _CHAPTERS.items():
        lines += [f"## {chapter}\n", *(line for name in names for line in _entry(name))]
    return "\n".join(lines)


def _entry(name: str) -> Iterator[str]:
    found = getattr(tidings, name)
    yield f"### tidings.{name}\n"
    yield f"```python\n{_written(name, found)}\n```\n"
    if says := _says(name, found):
        yield f"{says}\n"


def _written(name: str, found: Any) -> str:
    if not _is_called(found):
        return f"tidings.{name}"
    signature = inspect.signature(found)
    parameters = [_parameter(one) for one in signature.parameters.values()]
    if len(parameters) > 3:
        return f"tidings.{name}(\n{''.join(f'    {one},' + chr(10) for one in _with_star(signature, parameters))})"
    return f"tidings.{name}({', '.join(_with_star(signature, parameters))})"


def _is_called(found: Any) -> bool:
    """Not what applications only catch or compare with."""
    if found in (tidings.Retry, tidings.Fail):
        return True
    return not (isinstance(found, type) and issubclass(found, BaseException | int))


def _with_star(signature: inspect.Signature, written: list[str]) -> list[str]:
    for place, one in enumerate(signature.parameters.values()):
        if one.kind is one.KEYWORD_ONLY:
            return [*written[:place], "*", *written[place:]]
    return written


def _parameter(one: inspect.Parameter) -> str:
    star = "*" if one.kind is one.VAR_POSITIONAL else "**" if one.kind is one.VAR_KEYWORD else ""
    return f"{star}{one.name}" if one.default is one.empty else f"{star}{one.name}={_value(one.default)}"


def _value(value: Any) -> str:
    """Only what reads the same everywhere; an object of ours is its class."""
    if isinstance(value, Enum):
        return str(f"{type(value).__name__}.{value.name}")
    if isinstance(value, str):
        return f'"{value}"'
    plain = isinstance(value, int | float | tuple | frozenset) or value is None
    return repr(value) if plain else f"{type(value).__name__}()"


def _says(name: str, found: Any) -> str:
    if isinstance(found, type) and issubclass(found, Enum):
        return ", ".join(f"`{one.name}` ({one.value})" for one in found) + "."
    says = inspect.getdoc(found) or ""
    return "" if says.startswith(f"{name}(") else "\n\n".join(one_line(part) for part in says.split("\n\n"))
