"""Where the answer to a MySQL query ends: at an OK, at an error, or after the rows of its last result set."""

from enum import Enum, auto

OK, END_OF_ROWS, ERROR, LOCAL_FILE = 0x00, 0xFE, 0xFF, 0xFB
MORE_RESULTS = 0x0008
SHORTER_THAN_A_ROW = 9  # a row may start with 0xFE as well, but then a length of eight bytes follows


class _Awaits(Enum):
    FIRST = auto()
    COLUMNS = auto()
    ROWS = auto()


class Reply:
    """Reads the packets of one answer. With `deprecate_eof` both sides agreed to leave out the packet between
    columns and rows, and to end the rows with an OK in its place.
    """

    def __init__(self, deprecate_eof: bool) -> None:
        self._deprecate_eof = deprecate_eof
        self._awaits = _Awaits.FIRST
        self._columns = 0

    def ends_with(self, payload: bytes) -> bool:
        """Whether this packet, the next of the answer, is the last one."""
        if payload[0] == ERROR:
            return True
        match self._awaits:
            case _Awaits.FIRST:
                return self._read_first(payload)
            case _Awaits.COLUMNS:
                return self._read_column()
            case _Awaits.ROWS:
                return self._read_row(payload)

    def _read_first(self, payload: bytes) -> bool:
        if payload[0] == LOCAL_FILE:
            return False
        if payload[0] == OK:
            return self._is_last(_status_of_ok(payload))
        self._columns, _ = _length_encoded(payload, 0)
        if not self._deprecate_eof:
            self._columns += 1
        self._awaits = _Awaits.COLUMNS
        return False

    def _read_column(self) -> bool:
        self._columns -= 1
        if self._columns == 0:
            self._awaits = _Awaits.ROWS
        return False

    def _read_row(self, payload: bytes) -> bool:
        if payload[0] != END_OF_ROWS:
            return False
        if self._deprecate_eof:
            return len(payload) < 0xFFFFFF and self._is_last(_status_of_ok(payload))
        return len(payload) < SHORTER_THAN_A_ROW and self._is_last(_status_of_end(payload))

    def _is_last(self, status: int) -> bool:
        self._awaits = _Awaits.FIRST
        return not status & MORE_RESULTS


def _status_of_end(payload: bytes) -> int:
    return int.from_bytes(payload[3:5], "little")


def _status_of_ok(payload: bytes) -> int:
    _, at = _length_encoded(payload, 1)  # affected rows
    _, at = _length_encoded(payload, at)  # last inserted id
    return int.from_bytes(payload[at : at + 2], "little")


def _length_encoded(payload: bytes, at: int) -> tuple[int, int]:
    """An integer of the protocol's variable length, and where it ends."""
    width = {0xFC: 2, 0xFD: 3, 0xFE: 8}.get(payload[at], 0)
    if width == 0:
        return payload[at], at + 1
    return int.from_bytes(payload[at + 1 : at + 1 + width], "little"), at + 1 + width
