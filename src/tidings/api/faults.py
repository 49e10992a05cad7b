"""Announces what is our own fault, for the log; not what callers do."""

import traceback
from collections.abc import Mapping
from typing import Any

from tidings.api.problems import of_error
from tidings.errors import TidingsError
from tidings.telemetry.bus import tell
from tidings.telemetry.notices import RequestCrashed

_OURS = ("internal", "unavailable", "outcome_unknown")


def announce(scope: Mapping[str, Any], error: Exception) -> None:
    if isinstance(error, TidingsError) and of_error(error).code not in _OURS:
        return
    where = "" if isinstance(error, TidingsError) else "".join(traceback.format_exception(error))
    said = f"{type(error).__name__}: {error}"
    tell(RequestCrashed(scope["tidings.request_id"], scope["method"], scope["path"], said, where))
