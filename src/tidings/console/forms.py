"""What a form, or a query, brought: text by the names of its fields."""

from collections.abc import Iterator, Mapping
from urllib.parse import parse_qsl

from tidings.api.problems import Refused

_MOST_FIELDS = 2_000


class Form(Mapping[str, str]):
    """A field that is missing is '', so that every page can ask for its own."""

    def __init__(self, pairs: list[tuple[str, str]]) -> None:
        self._pairs = pairs
        self._last = dict(pairs)

    def __getitem__(self, name: str) -> str:
        return self._last.get(name, "")

    def __iter__(self) -> Iterator[str]:
        return iter(self._last)

    def __len__(self) -> int:
        return len(self._last)

    def __contains__(self, name: object) -> bool:
        return name in self._last

    def all(self, name: str) -> list[str]:
        """Of a field that may be there many times, such as the rows that were ticked."""
        return [value for one, value in self._pairs if one == name]

    def text(self, name: str) -> str:
        return self[name].strip()


def read_form(body: bytes) -> Form:
    try:
        return Form(parse_qsl(body.decode("utf-8"), keep_blank_values=True, max_num_fields=_MOST_FIELDS))
    except ValueError:
        raise Refused("malformed", "This form can't be read.") from None
