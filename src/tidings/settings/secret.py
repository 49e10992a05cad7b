"""Text that must not be shown: it is used like any `str`, but its `repr` hides what is secret."""

import re

_HIDDEN = "***"
_HARMLESS_LOCATION = re.compile(r"[\w.-]*(:[0-9]{1,5})?(/[\w.-]*)?", re.ASCII)


class Secret(str):
    __slots__ = ()

    def __repr__(self) -> str:
        return repr(self.masked)

    @property
    def masked(self) -> str:
        """What may be shown to people and written to logs."""
        return _HIDDEN if self else ""


class DatabaseUrl(Secret):
    """Shows user, host and database; hides the password and all parameters, which may hold one too."""

    __slots__ = ()

    @property
    def masked(self) -> str:
        scheme, separator, rest = self.partition("://")
        if not separator:
            return super().masked
        # A password may hold any sign: only what follows the last @ is surely no part of it.
        login, at, location = rest.rpartition("@")
        return f"{scheme}://{_masked_login(login)}{at}{_masked_location(location)}"


def _masked_login(login: str) -> str:
    user, colon, _ = login.partition(":")
    return f"{user}:{_HIDDEN}" if colon else user


def _masked_location(location: str) -> str:
    place = location.partition("?")[0]
    return place if _HARMLESS_LOCATION.fullmatch(place) else _HIDDEN
