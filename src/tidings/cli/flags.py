"""Every setting is a flag too: they are taken out of the arguments before the commands see them."""

from collections.abc import Callable, Collection, Iterator

from tidings.db.accounts import ALL_ROLES
from tidings.errors import SettingsInvalid
from tidings.settings.catalog import all_settings

FLAGS: dict[str, str] = {}


def take_setting_flags(
    arguments: list[str], own_flags: Callable[[str], Collection[str]] = lambda command: ()
) -> list[str]:
    """Takes `--lease-seconds 30s` and its like out of the arguments, for every setting there is; returns the rest.

    `own_flags` says of a command which flags it means for itself though a setting has the same name.
    """
    FLAGS.clear()
    known = {"--config", *(setting.as_flag for setting in all_settings(ALL_ROLES))}
    rest: list[str] = []
    waiting = iter(arguments)
    for argument in waiting:
        flag, equals, value = argument.partition("=")
        if flag not in known or flag in own_flags(_command(rest)):
            rest.append(argument)
            continue
        FLAGS[flag.removeprefix("--").replace("-", "_")] = value if equals else _value_of(flag, waiting)
    return rest


def _command(before: list[str]) -> str:
    return next((word for word in before if not word.startswith("-")), "")


def _value_of(flag: str, waiting: Iterator[str]) -> str:
    value = next(waiting, None)
    if value is None:
        raise SettingsInvalid([f"flag: {flag} has no value"])
    return value
