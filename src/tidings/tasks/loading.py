"""Imports an application's module and finds the handlers that it has put on the list."""

import importlib
import os
import sys

from tidings.errors import HandlerInvalid, TidingsError
from tidings.model.endpoint_check import OWN_TASKS
from tidings.tasks.handlers import Handlers, registered


def load_app(module: str) -> Handlers:
    """The handlers of this module and of what it imports; HandlerInvalid if it can't be had or has none."""
    # As `python -m` does: an application is found in the directory from which it is started.
    if (here := os.getcwd()) not in sys.path:
        sys.path.insert(0, here)
    try:
        importlib.import_module(module)
    except TidingsError:
        raise
    except ModuleNotFoundError as error:
        if error.name and f"{module}.".startswith(f"{error.name}."):
            raise HandlerInvalid(
                f"There is no module {module}.",
                f"--app names a Python module with handlers; it is looked for in {here} and where Python looks.",
            ) from error
        raise _broken(module, error) from error
    except (Exception, SystemExit) as error:  # it may do anything
        raise _broken(module, error) from error
    if not len(registered):
        raise HandlerInvalid(
            f"The module {module} registers no handler.", 'Decorate one with `@tidings.task("EMAIL_SEND")`.'
        )
    if taken := sorted(handler.biz_type for handler in registered if handler.biz_type in OWN_TASKS):
        raise HandlerInvalid(
            f"{taken[0]} is a type of our own, and has a handler already.", "Use another name for yours."
        )
    return registered


def _broken(module: str, error: Exception | SystemExit) -> HandlerInvalid:
    return HandlerInvalid(
        f"The module {module} can't be imported: {type(error).__name__}: {error}",
        f"`python -c 'import {module}'` shows where.",
    )
