"""API keys: what they allow, and what may be known of one besides itself."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Scope(StrEnum):
    """What a key is for; `COVERS` says which of them stand for others too."""

    PUBLISHER = "publisher"
    VIEWER = "viewer"
    OPERATOR = "operator"
    ADMIN = "admin"


COVERS: Mapping[Scope, frozenset[Scope]] = {
    Scope.PUBLISHER: frozenset({Scope.PUBLISHER}),
    Scope.VIEWER: frozenset({Scope.VIEWER}),
    Scope.OPERATOR: frozenset({Scope.VIEWER, Scope.OPERATOR}),
    Scope.ADMIN: frozenset(Scope),
}
_COVERED_BY = {scope: frozenset(own for own in Scope if scope in COVERS[own]) for scope in Scope}


@dataclass(frozen=True)
class Caller:
    """Whose key a request carries. `event_domain` is the only one it may publish to and see, if it is bound to one."""

    public_id: str
    scopes: frozenset[Scope]
    event_domain: str | None = None

    def may(self, scope: Scope) -> bool:
        return not self.scopes.isdisjoint(_COVERED_BY[scope])

    @property
    def actor(self) -> str:
        """Who the audit log says it was."""
        return f"key:{self.public_id}"


@dataclass(frozen=True)
class NewKey:
    """A key that was checked and may be stored; the key itself is not part of it."""

    name: str
    scopes: frozenset[Scope]
    event_domain: str | None
    lifetime: float | None
    """In seconds; None is for ever."""
