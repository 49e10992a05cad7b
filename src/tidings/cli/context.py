"""What every command needs: the settings, from file, environment and flags, and the installation they lead to."""

from collections.abc import Iterator
from contextlib import contextmanager

from tidings.cli.flags import FLAGS
from tidings.cli.output import say
from tidings.db.accounts import ALL_ROLES
from tidings.settings import Settings, load_settings
from tidings.telemetry.log_lines import start_logging
from tidings.wiring import Installation


def settings() -> Settings:
    return load_settings(flags=FLAGS, roles=ALL_ROLES)


@contextmanager
def installation(*, must_exist: bool) -> Iterator[Installation]:
    """The installation of the settings, its embedded server started if it has one.

    With `must_exist` an embedded database that was never made is an error, and is not made now.
    """
    chosen = settings()
    start_logging(chosen.log.log_format, chosen.log.log_level)
    if must_exist:
        Installation.look(chosen)
    with Installation.find(chosen, progress=say) as found:
        yield found
