"""Reads a response from bytes alone, within limits. The status decides as soon as the headers are complete."""

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from tidings.courier.error_codes import TIMEOUT, of_status

MAX_HEAD = 32 * 1024


class ResponseReader:
    """Reads one response after another from one connection; `begin` starts the next."""

    __slots__ = (
        "_count",
        "_excerpt_size",
        "_max_read",
        "_parser",
        "answered",
        "broken",
        "complete",
        "excerpt",
        "keep_alive",
        "retry_after",
        "status",
    )

    def __init__(self, max_read: int, excerpt_size: int) -> None:
        self._parser = HttpResponseParser(self)
        self._max_read = max_read
        self._excerpt_size = excerpt_size
        self.begin()

    def begin(self) -> None:
        self.status: int | None = None
        self.answered = False  # the headers are complete, and not those of an interim response
        self.complete = False
        self.broken = False
        self.keep_alive = False
        self.retry_after: bytes | None = None
        self.excerpt = b""
        self._count = 0

    def feed(self, data: bytes) -> bool:
        """True when nothing more is to be read: it is complete, broken, or as long as we are willing to read."""
        self._count += len(data)
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade):
            self.keep_alive = False
            self.broken = not self.answered
            return True
        if self.answered:
            return self.complete or self._count > self._max_read
        self.broken = self.broken or self._count > MAX_HEAD
        return self.broken

    def error_code(self, ending: str) -> str | None:
        """What the attempt comes to. `ending` is what went wrong when there is no whole response.

        Once the headers are there the status decides, whatever became of the body; only the deadline is for all of it.
        """
        return of_status(self.status) if self.answered and self.status and ending != TIMEOUT else ending

    # What the parser calls. After a complete response it may find another one: that one changes nothing.

    def on_message_begin(self) -> None:
        if self.complete:  # whatever comes on this connection now, it is no answer to a request of ours
            self.keep_alive = False

    def on_status(self, reason: bytes) -> None:
        status = self._parser.get_status_code()
        if status >= 200 and not self.complete:
            self.status = status

    def on_header(self, name: bytes, value: bytes) -> None:
        if len(name) == 11 and not self.answered and name.lower() == b"retry-after":
            self.retry_after = value

    def on_headers_complete(self) -> None:
        if self.complete:
            return
        status = self._parser.get_status_code()
        self.status = status or None
        self.answered = status >= 200
        # Interim responses are passed over, but a switch of protocols is something else, which nobody asked for.
        self.broken = status < 100 or status == 101

    def on_body(self, data: bytes) -> None:
        missing = self._excerpt_size - len(self.excerpt)
        if missing > 0 and self.answered and not self.complete:
            self.excerpt += data[:missing]

    def on_message_complete(self) -> None:
        if self.complete:
            return
        if self.answered:
            self.complete = True
            self.keep_alive = self._parser.should_keep_alive()
        elif not self.broken:
            self.status = self.retry_after = None
