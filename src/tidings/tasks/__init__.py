"""Handlers of tasks: what an application writes, `@task("EMAIL_SEND")`, and how it is found by a worker."""

from tidings.tasks.handlers import Handler, Handlers, registered, task
from tidings.tasks.signals import Fail, Retry, TaskContext

__all__ = ["Fail", "Handler", "Handlers", "Retry", "TaskContext", "registered", "task"]
