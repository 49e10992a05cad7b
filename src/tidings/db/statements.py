"""Named statements: read from .sql files beside the role that owns them, put into one engine's words.

A statement starts with one header line, `-- name: what it yields or changes`. An engine's own file replaces the text
of the statements that must differ and nothing else. Each is sent with its name as a comment, so that the server's own
statistics speak our language.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from importlib.resources.abc import Traversable

from tidings.db.dialect import Dialect, picked
from tidings.errors import StatementFileInvalid

_HEADER = re.compile(r"^-- ([a-z][a-z0-9_]*): (\S.*)$", re.MULTILINE)
_PIECES = re.compile(
    r"""(?P<text>'(?:[^']|'')*'|"[^"]*"|--[^\n]*|/\*.*?\*/|::)"""
    r"""|:(?P<parameter>[a-z_][a-z0-9_]*(?:\.(?:[a-z_]+|\*))?)"""
    r"""|\{(?P<joined>each|any)\s+(?P<batch>[a-z_]+)\((?P<columns>[^)]*)\)\s*:(?P<each>[^{}]*)\}"""
    r"""|\{(?P<word>[^{}]*)\}""",
    re.DOTALL,
)


@dataclass(frozen=True)
class NamedText:
    """One statement as written: its name, what it is for, its text."""

    name: str
    purpose: str
    text: str


@dataclass(frozen=True)
class Statement:
    """One statement in an engine's words.

    `text` has `{0}`, `{1}`, … for its parameters, in the order of `parameters`; `jobs.saga_id` is one column of a
    batch, `jobs.*` and `jobs.row` are all of its rows, `jobs.each` and `jobs.any` are `each` once for every row.
    `picks` are pairs of a list that must ascend and one that goes with it.
    """

    name: str
    text: str
    parameters: tuple[str, ...]
    each: str = ""
    picks: frozenset[tuple[str, str]] = frozenset()

    @cached_property
    def arguments(self) -> frozenset[str]:
        """The names a caller must give."""
        return frozenset(parameter.split(".")[0] for parameter in self.parameters)


def read_named(text: str, where: str) -> dict[str, NamedText]:
    """The named texts of one file, in its order."""
    pieces = _HEADER.split(text)
    if pieces[0].strip():
        raise StatementFileInvalid(f"{where} has text before its first '-- name: purpose' line.")
    found: dict[str, NamedText] = {}
    for name, purpose, body in zip(pieces[1::3], pieces[2::3], pieces[3::3], strict=True):
        if name in found:
            raise StatementFileInvalid(f"{where} names {name} twice.")
        found[name] = NamedText(name, purpose, body.strip().removesuffix(";").rstrip())
        if not found[name].text:
            raise StatementFileInvalid(f"{where} has no text under {name}.")
    return found


def compile_statement(name: str, text: str, dialect: Dialect, schema: str = "") -> Statement:
    """Puts one text into the engine's words; with `schema` its `{table …}` are named by it."""
    parameters: list[str] = []
    picks: set[tuple[str, str]] = set()
    repeated = ""

    def place(parameter: str) -> str:
        if parameter not in parameters:
            parameters.append(parameter)
        return f"{{{parameters.index(parameter)}}}"

    def translate(source: str) -> str:
        return "".join(_translated(source))

    def _translated(source: str) -> Iterator[str]:
        nonlocal repeated
        end = 0
        for match in _PIECES.finditer(source):
            yield _literal(source[end : match.start()])
            if match["parameter"]:
                yield place(match["parameter"])
            elif match["each"] is not None:
                repeated = _repeated(match["batch"], match["columns"], match["each"].strip())
                yield place(f"{match['batch']}.{match['joined']}")
            elif match["word"] is not None:
                if pick := picked(match["word"].strip()):
                    picks.add(pick)
                yield translate(_word(name, match["word"].strip(), dialect, schema))
            else:
                yield _literal(match[0])
            end = match.end()
        yield _literal(source[end:])

    return Statement(name, f"/* {name} */ {translate(text)}", tuple(parameters), repeated, frozenset(picks))


def _repeated(batch: str, columns: str, text: str) -> str:
    """The text with `{0}`, `{1}`, … for the columns of the batch."""
    places = {column.strip(): number for number, column in enumerate(columns.split(","))}
    return re.sub(rf"\b{batch}\.([a-z_]+)\b", lambda column: f"{{{places[column[1]]}}}", _literal(text))


def _literal(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def _word(name: str, word: str, dialect: Dialect, schema: str) -> str:
    try:
        return dialect.word(word, schema)
    except KeyError:
        raise StatementFileInvalid(f"{name} uses {{{word}}}, which is no word of {dialect.name}.") from None


@cache
def load_statements(package: str, dialect: Dialect, schema: str = "") -> Mapping[str, Statement]:
    """The statements of one role's package, in this dialect, by their short names."""
    owner = package.rpartition(".")[2]
    texts: dict[str, NamedText] = {}
    for file_name in dialect.files:
        texts |= _read_file(files(package) / file_name, known=texts, first=file_name == dialect.files[0])
    return {name: compile_statement(f"{owner}.{name}", named.text, dialect, schema) for name, named in texts.items()}


def _read_file(path: Traversable, known: Mapping[str, NamedText], first: bool) -> dict[str, NamedText]:
    if not path.is_file():
        return {}
    found = read_named(path.read_text(encoding="utf-8"), path.name)
    strangers = set(found) - set(known)
    if strangers and not first:
        raise StatementFileInvalid(f"{path} overrides statements that nobody wrote: {', '.join(sorted(strangers))}.")
    return found
