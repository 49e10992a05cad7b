"""Where a database is and who asks: one URL, read once, with an error that shows how to write it."""

from dataclasses import dataclass, replace
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit, urlunsplit

from tidings.errors import DatabaseUrlInvalid

_FAMILIES = {
    "postgresql": "postgresql",
    "postgres": "postgresql",
    "mysql": "mysql",
    "mariadb": "mysql",
}
_PORTS = {"postgresql": 5432, "mysql": 3306}
_REMEDY = (
    "Write postgresql://user:password@host:5432/database or mysql://user:password@host:3306/database;"
    " of a primary and its standbys all, as host1:5432,host2:5432."
)

_ESCAPING = "Signs such as / # @ : in a password are written as %2F %23 %40 %3A."
# As libpq calls it. Every role writes, so a server that only follows is never the one that is meant.
_CHOICE = "target_session_attrs"
_CHOICES = ("any", "primary", "read-write")
# Of the server, whoever asks. Other options may be one login's own, such as its certificate.
_OF_TLS = ("ssl-mode", "ssl-ca", "sslmode", "sslrootcert")


@dataclass(frozen=True)
class Place:
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True)
class Address:
    """`family` is `postgresql` or `mysql`; whether the latter is MariaDB, only the server can tell.

    Of several `places` the one that takes writes is meant: a primary, and those that may take over from it.
    """

    family: str
    url: str
    places: tuple[Place, ...]
    user: str
    password: str
    database: str
    options: dict[str, str]
    must_take_writes: bool = False

    @property
    def host(self) -> str:
        return self.places[0].host

    @property
    def port(self) -> int:
        return self.places[0].port

    @property
    def seconds_to_connect(self) -> float:
        """Less where another one may be asked instead."""
        return 4 if self.must_take_writes else 10

    def each(self) -> "list[Address]":
        """One address for each place."""
        if len(self.places) == 1:
            return [self]
        parts = urlsplit(self.url)
        account = parts.netloc.rpartition("@")[0]
        return [
            replace(
                self,
                url=urlunsplit(parts._replace(netloc=f"{account}@{place}")),
                places=(place,),
                must_take_writes=True,
            )
            for place in self.places
        ]

    def url_for(self, login: str, password: str, schema: str) -> str:
        """The same server for another login; on MySQL a schema is a database of its own."""
        database = self.database if self.family == "postgresql" else schema
        kept = {name: self.options[name] for name in _OF_TLS if name in self.options}
        url = f"{self.family}://{quote(login)}:{quote(password, safe='')}@{self._places}/{quote(database)}"
        return f"{url}?{urlencode(kept, quote_via=quote, safe='/')}" if kept else url

    def __str__(self) -> str:
        return f"{self.family}://{self.user}@{self._places}/{self.database}"

    __repr__ = __str__

    @property
    def _places(self) -> str:
        return ",".join(map(str, self.places))


def read_address(url: str) -> Address:
    """The parts of a database URL; never repeats the password in an error."""
    try:
        parts = urlsplit(url.strip())
        found = [_host_and_port(one) for one in parts.netloc.rpartition("@")[2].split(",")]
    except ValueError:
        found = [("", 0)]
    if any(port == 0 for _, port in found):
        # Not in Python's words: they quote the text, and a password with a / or # in it would be among it.
        raise DatabaseUrlInvalid(
            "The database URL can't be read: its host or port is malformed.", f"{_REMEDY} {_ESCAPING}"
        )
    family = _FAMILIES.get(parts.scheme)
    if family is None:
        raise DatabaseUrlInvalid(f"The database URL starts with {parts.scheme or 'nothing'!r}.", _REMEDY)
    hosts = [host for host, _ in found]
    missing = [name for name, value in (("a user", parts.username), ("a host", all(hosts))) if not value]
    if family == "postgresql" and not parts.path.strip("/"):
        missing.append("a database")
    if missing:
        raise DatabaseUrlInvalid(f"The database URL lacks {' and '.join(missing)}.", _REMEDY)
    options = dict(parse_qsl(parts.query))
    if family == "postgresql" and options.get(_CHOICE, "any") not in _CHOICES:
        raise DatabaseUrlInvalid(
            f"The {_CHOICE} of the database URL asks for a server that only reads, and every role writes.",
            f"Write {_CHOICE}=read-write, or leave it out. {_REMEDY}",
        )
    return Address(
        family=family,
        url=urlunsplit(parts._replace(scheme=family)),
        places=tuple(Place(host, port or _PORTS[family]) for host, port in found),
        user=unquote(parts.username or ""),
        password=unquote(parts.password or ""),
        database=unquote(parts.path.strip("/")),
        options=options,
    )


def _host_and_port(text: str) -> tuple[str, int | None]:
    parts = urlsplit(f"//{text}")
    return parts.hostname or "", parts.port
