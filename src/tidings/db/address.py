"""Where a database is and who asks: one URL, read once, with an error that shows how to write it."""

from dataclasses import dataclass
from urllib.parse import parse_qsl, quote, unquote, urlsplit, urlunsplit

from tidings.errors import DatabaseUrlInvalid

_FAMILIES = {
    "postgresql": "postgresql",
    "postgres": "postgresql",
    "mysql": "mysql",
    "mariadb": "mysql",
}
_PORTS = {"postgresql": 5432, "mysql": 3306}
_REMEDY = "Write postgresql://user:password@host:5432/database or mysql://user:password@host:3306/database."

_ESCAPING = "Signs such as / # @ : in a password are written as %2F %23 %40 %3A."


@dataclass(frozen=True)
class Address:
    """`family` is `postgresql` or `mysql`; whether the latter is MariaDB, only the server can tell."""

    family: str
    url: str
    host: str
    port: int
    user: str
    password: str
    database: str
    options: dict[str, str]

    def url_for(self, login: str, password: str, schema: str) -> str:
        """The same server for another login; on MySQL a schema is a database of its own."""
        database = self.database if self.family == "postgresql" else schema
        return f"{self.family}://{quote(login)}:{quote(password, safe='')}@{self.host}:{self.port}/{quote(database)}"

    def __str__(self) -> str:
        return f"{self.family}://{self.user}@{self.host}:{self.port}/{self.database}"

    __repr__ = __str__


def read_address(url: str) -> Address:
    """The parts of a database URL; never repeats the password in an error."""
    try:
        parts = urlsplit(url.strip())
        port = parts.port
    except ValueError:
        port = 0
    if port == 0:
        # Not in Python's words: they quote the text, and a password with a / or # in it would be among it.
        raise DatabaseUrlInvalid(
            "The database URL can't be read: its host or port is malformed.", f"{_REMEDY} {_ESCAPING}"
        )
    family = _FAMILIES.get(parts.scheme)
    if family is None:
        raise DatabaseUrlInvalid(f"The database URL starts with {parts.scheme or 'nothing'!r}.", _REMEDY)
    missing = [name for name, value in (("a user", parts.username), ("a host", parts.hostname)) if not value]
    if family == "postgresql" and not parts.path.strip("/"):
        missing.append("a database")
    if missing:
        raise DatabaseUrlInvalid(f"The database URL lacks {' and '.join(missing)}.", _REMEDY)
    return Address(
        family=family,
        url=urlunsplit(parts._replace(scheme=family)),
        host=parts.hostname or "",
        port=port or _PORTS[family],
        user=unquote(parts.username or ""),
        password=unquote(parts.password or ""),
        database=unquote(parts.path.strip("/")),
        options=dict(parse_qsl(parts.query)),
    )
