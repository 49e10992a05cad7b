"""What people typed into filters, read: a field that can't be is named in `errors`, and counts as empty."""

import datetime
import re
from collections.abc import Iterable, Mapping, Sequence

from tidings.console.languages import Words
from tidings.model.id import BIGGEST_ID

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_VISIBLE = re.compile(r"[!-~]+")
_YEARS = range(1971, 9999)


class Fields:
    def __init__(self, form: Mapping[str, str], words: Words) -> None:
        self._form = form
        self._words = words
        self.errors: dict[str, str] = {}

    def line(self, name: str, most: int = 300) -> str:
        """Text without control signs."""
        text = self._form[name].strip()
        if len(text) > most:
            return self._wrong(name, "too_long", most=most)
        return self._wrong(name, "no_text") if _CONTROL.search(text) else text

    def visible(self, name: str, most: int = 100) -> str:
        """Visible ASCII, as types and codes are."""
        text = self.line(name, most)
        return self._wrong(name, "not_visible") if text and not _VISIBLE.fullmatch(text) else text

    def whole(self, name: str, least: int = 1, most: int = BIGGEST_ID, *, needed: bool = False) -> int:
        """0 where nothing was typed."""
        text = self._form[name].strip().lstrip("#")
        number = _number(text, least, most)
        if number is None and (text or needed):
            self._wrong(name, "no_number", least=least, most=most)
        return number or 0

    def moment(self, name: str) -> datetime.datetime | None:
        """As browsers write it; UTC where no zone is said."""
        text = self._form[name].strip()
        if not text:
            return None
        try:
            read = datetime.datetime.fromisoformat(text)
            known = (read if read.tzinfo else read.replace(tzinfo=datetime.UTC)).astimezone(datetime.UTC)
        except (ValueError, OverflowError):
            known = None
        # Within what every database knows as a moment.
        if known is None or known.year not in _YEARS:
            self._wrong(name, "no_moment")
            return None
        return known

    def one_of(self, name: str, options: Sequence[str]) -> str:
        text = self._form[name].strip()
        return text if not text or text in options else self._wrong(name, "not_one_of", options=", ".join(options))

    def _wrong(self, name: str, what: str, **values: object) -> str:
        self.errors.setdefault(name, self._words(f"shared.typed.{what}", **values))
        return ""


def ids_in(texts: Iterable[str]) -> list[int]:
    """Each once; what is no id is left out."""
    return [*dict.fromkeys(id for text in texts if (id := _number(text, 1, BIGGEST_ID)))]


def _number(digits: str, least: int, most: int) -> int | None:
    is_one = digits.isascii() and digits.isdecimal() and len(digits) < 20 and least <= int(digits) <= most
    return int(digits) if is_one else None
