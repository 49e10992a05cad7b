"""What every command needs: the settings, from file, environment and flags, and the installation they lead to."""

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager

from tidings.cli.output import say
from tidings.db.accounts import ALL_ROLES
from tidings.errors import SettingsInvalid
from tidings.settings import Settings, load_settings
from tidings.settings.catalog import all_settings
from tidings.telemetry.log_lines import start_logging
from tidings.wiring import Installation

FLAGS: dict[str, str] = {}


def take_setting_flags(arguments: list[str], own: Mapping[str, Collection[str]] = {}) -> list[str]:
    """Takes `--lease-seconds 30s` and its like out of the arguments, for every setting there is; returns the rest.

    `own` has, by command, the flags that a command means for itself though a setting has the same name.
    """
    FLAGS.clear()
    known = {"--config", *(setting.as_flag for setting in all_settings(ALL_ROLES))}
    rest: list[str] = []
    waiting = iter(arguments)
    for argument in waiting:
        flag, equals, value = argument.partition("=")
        command = next((word for word in rest if not word.startswith("-")), "")
        if flag not in known or flag in own.get(command, ()):
            rest.append(argument)
            continue
        FLAGS[flag.removeprefix("--").replace("-", "_")] = value if equals else _value_of(flag, waiting)
    return rest


def _value_of(flag: str, waiting: Iterator[str]) -> str:
    value = next(waiting, None)
    if value is None:
        raise SettingsInvalid([f"flag: {flag} has no value"])
    return value


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
