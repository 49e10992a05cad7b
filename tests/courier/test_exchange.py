"""The bytes of a request: one piece, the body untouched, and nothing that a header could smuggle in."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.courier.error_codes import INVALID_REQUEST, Failed
from tidings.courier.exchange import opening, request_bytes
from tidings.decisions.destinations import DestinationRules, read_destination


def opening_of(url: str) -> str:
    return opening(read_destination(url, DestinationRules(("localhost",), ports=range(1, 65536))), "tidings/1")


def test_a_request_is_written_as_http_wants_it() -> None:
    headers = (("content-type", "application/json"), ("webhook-id", "msg_1"))
    assert request_bytes(opening_of("https://example.com/hook?a=b"), headers, b'{"a": 1}') == (
        b"POST /hook?a=b HTTP/1.1\r\n"
        b"host: example.com\r\n"
        b"user-agent: tidings/1\r\n"
        b"accept-encoding: identity\r\n"
        b"content-length: 8\r\n"
        b"content-type: application/json\r\n"
        b"webhook-id: msg_1\r\n"
        b"\r\n"
        b'{"a": 1}'
    )


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://example.com/", "example.com"),
        ("https://example.com:443/", "example.com"),
        ("https://example.com:8443/", "example.com:8443"),
        ("http://localhost/", "localhost"),
        ("http://localhost:443/", "localhost:443"),
        ("https://EXAMPLE.com./", "example.com"),
    ],
)
def test_the_host_header_names_the_port_only_if_it_is_not_the_usual_one(url: str, host: str) -> None:
    assert f"\r\nhost: {host}\r\n" in opening_of(url)


@given(st.binary(max_size=2000))
def test_the_body_goes_out_as_it_is(body: bytes) -> None:
    written = request_bytes(opening_of("https://example.com/"), (), body)
    head, _, sent = written.partition(b"\r\n\r\n")
    assert sent == body
    assert f"content-length: {len(body)}".encode() in head


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("x", "a\r\nb: c"),
        ("x", "a\nb"),
        ("x", "a\rb"),
        ("x", "a\0b"),
        ("x", "a\tb"),
        ("x", "a\x7fb"),
        ("x", "ü"),
        ("x", "\u2028"),
        ("x", "\ud800"),
        ("x", "①"),
        ("", "a"),
        ("x y", "a"),
        ("x:", "a"),
        ("x\r\ny", "a"),
        ("ü", "a"),
        ("x\u00a0", "a"),
        *[
            (name, "1")
            for name in ("host", "Host", "content-length", "Transfer-Encoding", "connection", "TE", "trailer")
        ],
        *[(name, "1") for name in ("upgrade", "Expect", "cookie", "proxy-authorization", "Proxy-Connection")],
        *[
            (name, "1")
            for name in ("accept-encoding", "content-encoding", "user-agent", "keep-alive", "HTTP2-Settings")
        ],
    ],
)
def test_what_could_change_the_request_is_refused(name: str, value: str) -> None:
    with pytest.raises(Failed) as refused:
        request_bytes(opening_of("https://example.com/"), (("content-type", "application/json"), (name, value)), b"")
    assert refused.value.code == INVALID_REQUEST


@given(st.lists(st.tuples(st.text(max_size=8), st.text(max_size=12)), max_size=4))
def test_whatever_headers_are_given_each_is_one_line_or_all_are_refused(headers: list[tuple[str, str]]) -> None:
    try:
        written = request_bytes(opening_of("https://example.com/"), tuple(headers), b"body")
    except Failed:
        return
    head, _, body = written.partition(b"\r\n\r\n")
    lines = head.split(b"\r\n")[5:]
    assert lines == [f"{name}: {value}".encode("ascii") for name, value in headers]
    assert body == b"body"
