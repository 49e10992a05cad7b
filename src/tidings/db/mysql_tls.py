"""TLS towards MySQL and MariaDB, asked for in the URL with the words of their own clients."""

import ssl
from collections.abc import Mapping

from tidings.errors import DatabaseUrlInvalid

_MODES = ("DISABLED", "REQUIRED", "VERIFY_CA", "VERIFY_IDENTITY")
_REMEDY = f"After the ? a URL may have ssl-mode={'|'.join(_MODES)} and ssl-ca=/path/of/ca.pem."


def tls_context(options: Mapping[str, str]) -> ssl.SSLContext | None:
    """None for a connection in the clear; what is not understood is refused, not ignored."""
    unknown = options.keys() - {"ssl-mode", "ssl-ca"}
    mode = options.get("ssl-mode", "VERIFY_IDENTITY" if "ssl-ca" in options else "DISABLED").upper()
    if unknown or mode not in _MODES:
        raise DatabaseUrlInvalid(f"The database URL has options we don't know: {_shown(options)}.", _REMEDY)
    if mode == "DISABLED":
        return None
    try:
        context = ssl.create_default_context(cafile=options.get("ssl-ca"))
    except OSError as error:
        raise DatabaseUrlInvalid(f"The file of ssl-ca can't be read: {error}.", _REMEDY) from error
    context.check_hostname = mode == "VERIFY_IDENTITY"
    if mode == "REQUIRED":
        context.verify_mode = ssl.CERT_NONE
    return context


def _shown(options: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={value}" if name == "ssl-mode" else name for name, value in options.items())
