"""Every rule for callback URLs: tables of what is accepted, in which form, and what is refused, with which words."""

from contextlib import suppress
from ipaddress import ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.decisions.addresses import is_never_called, is_public
from tidings.decisions.destinations import Destination, DestinationRules, is_on_allow_lists, read_destination
from tidings.errors import SubscriptionRefused

STRICT = DestinationRules()
LOOPBACK = DestinationRules(http_hosts=("127.0.0.1", "::1"), networks=(ip_network("127.0.0.0/8"), ip_network("::1")))
LENIENT = DestinationRules(
    http_hosts=("receiver", "hooks.internal", "8.8.8.8", "10.1.2.3", "169.254.169.254", "metadata.google.internal"),
    networks=(ip_network("10.0.0.0/8"), ip_network("169.254.0.0/16"), ip_network("fd00::/8")),
    ports=(443, 8443),
)
EVERYTHING = DestinationRules(
    http_hosts=("::1", "127.0.0.1"), networks=(ip_network("0.0.0.0/0"), ip_network("::/0")), ports=range(1, 65_536)
)

ACCEPTED = [
    (STRICT, "https://example.com", "https://example.com/"),
    (STRICT, "https://example.com/hook", "https://example.com/hook"),
    (STRICT, "HTTPS://Example.COM:443/Hook", "https://example.com/Hook"),
    (STRICT, "https://example.com.", "https://example.com/"),
    (STRICT, "https://example.com.:0443/a", "https://example.com/a"),
    (STRICT, "https://example.com?x=1", "https://example.com/?x=1"),
    (STRICT, "https://example.com/a//b/../c?d=%2F%2f&e[]=@:!$'()*+,;", None),
    (STRICT, "https://example.com/?next=https://other.example/", None),
    (STRICT, "https://xn--bcher-kva.example/", None),
    (STRICT, "https://a_b.example.com/", None),
    (STRICT, "https://1.example/", None),
    (STRICT, "https://a-1.b-2.example.co/", None),
    (STRICT, f"https://{'a' * 63}.com/", None),
    (STRICT, f"https://{'.'.join(['a' * 49] * 5)}.io/", None),
    (STRICT, "https://example.com/" + "a" * (2048 - 20), None),
    (STRICT, "https://localhost.example.com/", None),
    (STRICT, "https://test.com/", None),
    (LOOPBACK, "http://127.0.0.1:9000/hook", None),
    (LOOPBACK, "http://127.0.0.1:80/hook", "http://127.0.0.1/hook"),
    (LOOPBACK, "https://127.0.0.1:9443/", None),
    (LOOPBACK, "https://127.9.9.9:1/", None),
    (LOOPBACK, "http://[::1]:9000/", None),
    (LOOPBACK, "http://[0:0::0001]:9000", "http://[::1]:9000/"),
    (LENIENT, "http://receiver:8080/", None),
    (LENIENT, "https://receiver/", None),
    (LENIENT, "http://RECEIVER./", "http://receiver/"),
    (LENIENT, "http://hooks.internal/", None),
    (LENIENT, "https://10.200.0.1:8080/", None),
    (LENIENT, "http://10.1.2.3/", None),
    (LENIENT, "https://example.com:8443/", None),
    (LENIENT, "http://8.8.8.8/", None),
    (LENIENT, "https://[fd00:0:0:1::2]/", "https://[fd00:0:0:1::2]/"),
]
REFUSED = [
    # before parsing
    (STRICT, "", "no URL"),
    (STRICT, None, "no URL"),
    (STRICT, 7, "no URL"),
    (STRICT, b"https://example.com", "no URL"),
    (STRICT, " https://example.com/", "space"),
    (STRICT, "https://example.com/ a", "space"),
    (STRICT, "https://exam\tple.com/", "control"),
    (STRICT, "https://example.com/\r\nX: y", "control"),
    (STRICT, "https://example.com/\x00", "control"),
    (STRICT, "https://example.com/\x7f", "control"),
    (STRICT, "https://example.com\\@evil.com/", "backslash"),
    (STRICT, "https://bücher.example/", "punycode"),
    (STRICT, "https://127。0。0。1/", "ASCII"),
    (STRICT, "https://①②⑦.⓪.⓪.①/", "ASCII"),
    (STRICT, "https://example.com/ü", "percent-encode"),
    (STRICT, "https://example.com/\ud800", "ASCII"),
    (STRICT, "https://example.com/" + "a" * (2048 - 19), "longer than 2048"),
    (STRICT, "https://example.com?" + "a" * (2048 - 20), "longer than 2048"),
    # scheme
    (STRICT, "http://example.com/", "TIDINGS_ALLOW_HTTP_HOSTS"),
    (LENIENT, "http://example.com/", "https://"),
    (STRICT, "ftp://example.com/", "https://"),
    (STRICT, "file:///etc/passwd", "https://"),
    (STRICT, "gopher://example.com/", "https://"),
    (STRICT, "javascript:alert(1)", "https://"),
    (STRICT, "//example.com/", "https://"),
    (STRICT, "example.com/hook", "https://"),
    (STRICT, "https:/example.com/", "https://"),
    (STRICT, "https:example.com", "https://"),
    # parts that are not allowed
    (STRICT, "https://user@example.com/", "user"),
    (STRICT, "https://user:pass@example.com/", "password"),
    (STRICT, "https://foo@127.0.0.1:80@example.com/", "user"),
    (STRICT, "https://example.com/#part", "fragment"),
    (STRICT, "https://example.com#", "fragment"),
    (STRICT, "https://example.com/%", "Percent-encode"),
    (STRICT, "https://example.com/%zz", "Percent-encode"),
    (STRICT, "https://example.com/<a>", "Percent-encode"),
    (STRICT, 'https://example.com/"', "Percent-encode"),
    (STRICT, "https://example.com/a|b", "Percent-encode"),
    # host
    (STRICT, "https://", "no host"),
    (STRICT, "https:///hook", "no host"),
    (STRICT, "https://:443/", "no host"),
    (STRICT, "https://./", "no host"),
    (STRICT, "https://exam%70le.com/", "%"),
    (STRICT, "https://[fe80::1%25eth0]/", "zone"),
    (STRICT, "https://example..com/", "no host name"),
    (STRICT, "https://.example.com/", "no host name"),
    (STRICT, "https://example.com../", "no host name"),
    (STRICT, "https://-a.example.com/", "no host name"),
    (STRICT, "https://a-.example.com/", "no host name"),
    (STRICT, "https://a*b.example.com/", "no host name"),
    (STRICT, "https://exam,ple.com/", "no host name"),
    (STRICT, f"https://{'a' * 64}.com/", "no host name"),
    (STRICT, f"https://{'.'.join(['a' * 50] * 5)}.com/", "longer than 253"),
    (STRICT, "https://localhost/", "local network"),
    (STRICT, "https://intranet/", "local network"),
    (STRICT, "https://a.localhost/", "local network"),
    (STRICT, "https://printer.local/", "local network"),
    (STRICT, "https://a.internal./", "local network"),
    (STRICT, "https://a.HOME.arpa/", "local network"),
    (STRICT, "https://a.onion/", "local network"),
    (STRICT, "https://a.test/", "local network"),
    (STRICT, "https://a.invalid/", "local network"),
    (LENIENT, "https://other.internal/", "local network"),
    # ports
    (STRICT, "https://example.com:8443/", "TIDINGS_ALLOW_PORTS"),
    (STRICT, "https://example.com:80/", "port 80"),
    (LENIENT, "https://example.com:22/", "443, 8443"),
    (LOOPBACK, "https://example.com:9000/", "port 9000"),
    (STRICT, "https://example.com:0/", "no port 0"),
    (STRICT, "https://example.com:65536/", "no port"),
    (STRICT, "https://example.com:/", "host:port"),
    (STRICT, "https://example.com:443x/", "host:port"),
    (STRICT, "https://example.com:-1/", "host:port"),
    (STRICT, "https://example.com:443:443/", "host:port"),
    # addresses
    (STRICT, "https://8.8.8.8/", "TIDINGS_ALLOW_NETWORKS"),
    (STRICT, "https://127.0.0.1/", "not public"),
    (STRICT, "https://127.0.0.1./", "not public"),
    (STRICT, "https://[::1]/", "not public"),
    (STRICT, "https://[2606:4700::1111]/", "TIDINGS_ALLOW_NETWORKS"),
    (LENIENT, "https://192.168.0.1/", "not public"),
    (LENIENT, "http://10.9.9.9/", "TIDINGS_ALLOW_HTTP_HOSTS"),
    (DestinationRules(http_hosts=("10.1.2.3",)), "http://10.1.2.3/", "10.1.2.3/32 to TIDINGS_ALLOW_NETWORKS"),
    (STRICT, "https://2001:db8::1/", "host:port"),
    (STRICT, "https://[::1/", "host:port"),
    (STRICT, "https://[]/", "no IPv6"),
    (STRICT, "https://[v1.x]/", "no IPv6"),
    # addresses in disguise: whatever is allowed
    *[
        (EVERYTHING, f"https://{host}/", "four numbers")
        for host in ("2130706433", "127.1", "0x7f.1", "0x7f000001", "017700000001", "127.0.0.01", "1.2.3.4.5")
    ],
    (EVERYTHING, "https://example.0x1/", "four numbers"),
    (EVERYTHING, "https://example.1/", "four numbers"),
    (EVERYTHING, "https://256.1.1.1/", "four numbers"),
    (EVERYTHING, "https://[::ffff:127.0.0.1]/", "Write 127.0.0.1"),
    (EVERYTHING, "https://[::ffff:7f00:1]/", "Write 127.0.0.1"),
    # metadata: whatever is allowed
    *[
        (EVERYTHING, f"https://{host}/", "never called")
        for host in (
            "169.254.169.254",
            "169.254.170.2",
            "100.100.100.200",
            "168.63.129.16",
            "192.0.0.192",
            "0.0.0.0",
            "255.255.255.255",
            "224.0.0.1",
            "[fd00:ec2::254]",
            "[fd20:ce::254]",
            "[fe80::1]",
            "[::]",
            "[ff02::1]",
            "[64:ff9b::169.254.169.254]",
            "[2002:a9fe:a9fe::1]",
            "[::169.254.169.254]",
        )
    ],
    (LENIENT, "http://169.254.169.254/latest/meta-data", "never called"),
    (LENIENT, "http://metadata.google.internal/", "never called"),
]


@pytest.mark.parametrize(("rules", "raw", "canonical"), ACCEPTED, ids=lambda value: str(value)[:60])
def test_what_is_accepted_and_in_which_form_it_is_kept(
    rules: DestinationRules, raw: str, canonical: str | None
) -> None:
    assert read_destination(raw, rules).url == (canonical or raw)


@pytest.mark.parametrize(("rules", "raw", "says"), REFUSED, ids=lambda value: ascii(value)[:60])
def test_what_is_refused_and_why(rules: DestinationRules, raw: object, says: str) -> None:
    with pytest.raises(SubscriptionRefused) as refused:
        read_destination(raw, rules)
    assert says in str(refused.value)
    assert refused.value.field == "callback_url"


def test_the_parts_are_those_that_are_connected_to_and_sent() -> None:
    assert read_destination("HTTP://[::0:1]:9000?a", LOOPBACK) == Destination(
        "http", "::1", 9000, "/?a", "http://[::1]:9000/?a"
    )
    assert read_destination("https://Example.com./a?b", STRICT) == Destination(
        "https", "example.com", 443, "/a?b", "https://example.com/a?b"
    )


@pytest.mark.parametrize(
    ("rules", "url", "listed"),
    [
        (STRICT, "https://example.com/", False),
        (LENIENT, "https://example.com/", False),
        (LENIENT, "https://receiver/", True),
        (LENIENT, "https://10.200.0.1/", True),
        (LENIENT, "http://8.8.8.8/", True),
        (LOOPBACK, "https://127.8.8.8/", True),
        (LOOPBACK, "http://[::1]/", True),
    ],
)
def test_on_the_allow_lists_is_what_the_settings_name(rules: DestinationRules, url: str, listed: bool) -> None:
    assert is_on_allow_lists(read_destination(url, rules), rules) is listed


@pytest.mark.parametrize(
    ("address", "public"),
    [
        *[(text, True) for text in ("8.8.8.8", "1.1.1.1", "2606:4700::1111", "64:ff9b::808:808", "172.32.0.1")],
        *[(text, False) for text in ("10.0.0.1", "100.64.0.1", "127.0.0.1", "172.16.0.1", "192.168.1.1", "240.0.0.1")],
        *[(text, False) for text in ("192.0.2.1", "192.88.99.1", "198.18.0.1", "203.0.113.1", "169.254.1.1")],
        *[(text, False) for text in ("::1", "::", "fd00::1", "fe80::1", "fec0::1", "ff02::1", "5f00::1", "3fff::1")],
        *[(text, False) for text in ("::ffff:8.8.8.8", "::127.0.0.1", "64:ff9b::7f00:1", "64:ff9b:1::1")],
        *[(text, False) for text in ("2001::1", "2001:db8::1", "2002:7f00:1::1", "168.63.129.16")],
    ],
)
def test_an_address_is_public_by_our_own_table(address: str, public: bool) -> None:
    """Several of these are called global by `ipaddress`."""
    assert is_public(ip_address(address)) is public


def test_loopback_is_a_matter_of_settings_and_metadata_is_not() -> None:
    assert not is_never_called(ip_address("::1"))
    assert not is_never_called(ip_address("127.0.0.1"))
    assert is_never_called(ip_address("::ffff:169.254.169.254"))


HOSTS = st.one_of(
    st.from_regex(r"[a-zA-Z0-9_-]{1,20}(\.[a-zA-Z0-9_-]{1,20}){0,3}\.?", fullmatch=True),
    st.ip_addresses(v=4).map(str),
    st.ip_addresses(v=6).map(lambda address: f"[{address.exploded}]"),
    st.text(max_size=12),
)
URLS = st.one_of(
    st.builds(
        "{}://{}{}{}".format,
        st.sampled_from(["https", "HTTPS", "http"]),
        HOSTS,
        st.sampled_from(["", ":443", ":80", ":0080", ":9000"]),
        st.text(st.characters(min_codepoint=33, max_codepoint=126, exclude_characters="#\\"), max_size=20).map(
            lambda rest: f"/{rest}" if rest else ""
        ),
    ),
    st.text(max_size=40),
)


@given(URLS)
def test_the_canonical_form_is_its_own_canonical_form(raw: str) -> None:
    try:
        first = read_destination(raw, EVERYTHING)
    except SubscriptionRefused:
        return
    assert read_destination(first.url, EVERYTHING) == first
    assert first.url.isascii()
    assert first.url.isprintable()


@given(st.one_of(st.text(), st.binary(), st.integers(), st.none(), st.lists(st.text())))
def test_whatever_is_given_the_answer_is_a_destination_or_a_refusal(raw: object) -> None:
    for rules in (STRICT, LENIENT, EVERYTHING):
        with suppress(SubscriptionRefused):
            assert isinstance(read_destination(raw, rules), Destination)
