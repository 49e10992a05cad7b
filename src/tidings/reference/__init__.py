"""Makes the pages of docs/reference that come from code: `python -m tidings.reference [--check] FOLDER`."""

from collections.abc import Callable, Mapping
from pathlib import Path

from tidings.reference.command_line import command_line_reference
from tidings.reference.error_codes import error_codes_reference
from tidings.reference.flow import flow_reference
from tidings.reference.http_api import http_api_reference
from tidings.reference.metrics import metrics_reference
from tidings.reference.notices import notices_reference
from tidings.reference.python import python_reference
from tidings.reference.retries import retries_reference
from tidings.reference.settings import settings_reference
from tidings.reference.tables import tables_reference

PAGES: Mapping[str, Callable[[], str]] = {
    "command-line.md": command_line_reference,
    "error-codes.md": error_codes_reference,
    "flow.md": flow_reference,
    "http-api.md": http_api_reference,
    "metrics.md": metrics_reference,
    "notices.md": notices_reference,
    "python.md": python_reference,
    "retries.md": retries_reference,
    "settings.md": settings_reference,
    "tables.md": tables_reference,
}


def stale_pages(folder: Path) -> list[str]:
    """The pages that no longer say what the code says."""
    return [
        name
        for name, make in PAGES.items()
        if not (folder / name).is_file() or (folder / name).read_text("utf-8") != make()
    ]
