"""What the roles of one installation are called on its server; server-wide names must not meet another's."""

from dataclasses import dataclass

DEFAULT_PREFIX = "tidings"


@dataclass(frozen=True)
class Names:
    """`schema` is a schema on PostgreSQL and a database on MySQL/MariaDB."""

    schema: str = "tidings"
    prefix: str = DEFAULT_PREFIX

    def group(self, role: str) -> str:
        """The role that holds the grants. Plain for the first installation, prefixed for any other.

        No prefix and no login has a colon in it, so the two can never be mistaken for each other.
        """
        return role if self.prefix == DEFAULT_PREFIX else f"{self.prefix}:{role}"

    def login(self, role: str) -> str:
        return f"{self.prefix}_{role}"

    @property
    def definer(self) -> str:
        """The locked account in whose name triggers and routines run on MySQL/MariaDB."""
        return f"{self.prefix}_definer"
