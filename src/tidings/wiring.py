"""The composition root: from settings to the database, for every role. The only module that knows where things are."""

import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from tidings.db.accounts import ALL_ROLES
from tidings.db.address import read_address
from tidings.db.embedded import EmbeddedServer, hold, peek
from tidings.db.engine import Engine, open_engine
from tidings.db.names import Names
from tidings.decisions.destinations import DestinationRules
from tidings.decisions.subscribing import SubscriptionRules
from tidings.errors import DatabaseUrlInvalid, EmbeddedServerFailed, SchemaError
from tidings.flow import OWNER
from tidings.settings import Settings

if TYPE_CHECKING:
    from tidings.db.migrations.migrator import Migrator
    from tidings.vault import Vault

DATABASE = "tidings"


@dataclass(frozen=True)
class Access:
    """How a role reaches the database: its own login, or a common one from which it sets its role to `group`."""

    url: str
    group: str = ""


class Installation:
    """One installation, on the embedded server or on one's own. Use it as a context manager: it lets go at the end."""

    def __init__(self, settings: Settings, embedded: EmbeddedServer | None) -> None:
        self.settings = settings
        self.names = Names(settings.installation.schema, settings.installation.prefix)
        self.embedded = embedded

    @classmethod
    def find(cls, settings: Settings, progress: Callable[[str], None] | None = None) -> Self:
        """Starts or joins the embedded server, unless some URL says that there is another."""
        return cls(settings, None if _has_urls(settings) else hold(settings.installation.data_dir, progress=progress))

    @classmethod
    def look(cls, settings: Settings) -> Self:
        """The same without starting anything."""
        if _has_urls(settings):
            return cls(settings, None)
        embedded = peek(settings.installation.data_dir)
        if embedded is None:
            raise EmbeddedServerFailed(
                f"There is no database in {settings.installation.data_dir} yet.",
                "Run `tidings migrate` to make one, or set TIDINGS_DATABASE_URL to use your own server.",
            )
        return cls(settings, embedded)

    def access(self, role: str) -> Access:
        if self.embedded is not None:
            return Access(self.embedded.url(self.names.login(role), DATABASE))
        database = self.settings.database
        if role in database.urls:
            return Access(database.urls[role])
        if not database.database_url:
            raise DatabaseUrlInvalid(
                f"There is no database URL for the role {role}.",
                f"Set TIDINGS_DATABASE_URL_{role.upper()}, or TIDINGS_DATABASE_URL for all roles.",
            )
        return Access(database.database_url, "" if role == OWNER else self.names.group(role))

    def own_places(self) -> set[tuple[str, int]]:
        """Hosts and ports that are nobody's endpoint, whatever the settings allow: the databases and our own API."""
        database, server = self.settings.database, self.settings.server
        urls: list[str] = [*database.urls.values(), database.database_url]
        if self.embedded is not None:
            urls.append(self.access(OWNER).url)
        addresses = [read_address(url) for url in urls if url]
        ours = {(server.host, port) for port in (server.port, server.metrics_port) if port}
        return {(place.host, place.port) for address in addresses for place in address.places} | ours

    @asynccontextmanager
    async def engine(self, role: str, size: int = 2, patience: float | None = None) -> AsyncIterator[Engine]:
        """This role's way to the database, for the length of a block. Without `patience` it is that of the settings."""
        access = self.access(role)
        engine = await open_engine(
            access.url,
            owner=role,
            names=self.names,
            group=access.group,
            patience=self.settings.database.connect_patience if patience is None else patience,
            size=size,
        )
        try:
            yield engine
        finally:
            await engine.close()

    async def refuse_unless_ready(self, role: str) -> None:
        """Raises what is wrong with the way to the database, or with the tables: what lacks a person must mend."""
        async with self.engine(role) as engine:
            missing = await migrator_of(engine, self.names).missing_steps()
        if missing:
            raise SchemaError(
                f"The database is not what this program needs: {len(missing)} migration steps are missing.",
                "Run `tidings migrate`.",
            )

    @asynccontextmanager
    async def migrator(self) -> AsyncIterator["Migrator"]:
        engine = await open_engine(
            await self._migrating_url(),
            owner="migrate",
            names=self.names,
            schema="",
            patience=self.settings.database.connect_patience,
            size=4,
        )
        try:
            yield migrator_of(engine, self.names)
        finally:
            await engine.close()

    def new_passwords(self) -> dict[str, str]:
        """A password for each login, should it have to be made."""
        logins = [self.names.login(role) for role in ALL_ROLES]
        if self.embedded is not None:
            return {login: self.embedded.password(login) for login in logins}
        return {login: secrets.token_urlsafe(24) for login in logins}

    def vault(self) -> "Vault":
        """The key ring of the settings; the embedded database brings a key of its own."""
        from tidings.vault import Vault  # few commands need it, and it is slow to load

        keys = self.settings.secrets.secret_keys
        return Vault(keys if self.embedded is None else self.embedded.secret_keys(keys))

    def close(self) -> None:
        if self.embedded is not None:
            self.embedded.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def _migrating_url(self) -> str:
        if self.embedded is None:
            return self.access(OWNER).url
        await _make_database(self.embedded, self.names)
        return self.embedded.url(self.embedded.superuser, DATABASE)


def migrator_of(engine: Engine, names: Names) -> "Migrator":
    """Loaded when it is needed: it knows every table, and most commands have to know none."""
    from tidings.db.migrations.migrator import Migrator

    return Migrator(engine, names)


def rules_of(settings: Settings) -> SubscriptionRules:
    """The bounds that these settings set for every subscription."""
    sending = settings.sending
    return SubscriptionRules(
        DestinationRules(sending.allow_http_hosts, sending.allow_networks, sending.allow_ports),
        longest_timeout=settings.worker.longest_timeout,
        longest_delay=settings.retries.max_delay_seconds,
        most_in_flight=settings.worker.most_in_flight,
    )


def _has_urls(settings: Settings) -> bool:
    return bool(settings.database.database_url or settings.database.urls)


async def _make_database(embedded: EmbeddedServer, names: Names) -> None:
    server = embedded.url(embedded.superuser, "postgres")
    engine = await open_engine(server, owner="migrate", names=names, schema="", patience=10)
    try:
        await migrator_of(engine, names).make_database(DATABASE)
    finally:
        await engine.close()
