"""What settings must keep towards each other. A check returns what would be right, or None."""

from collections.abc import Callable

from tidings.settings.sections import Settings
from tidings.settings.values import duration_text


def timeout_fits_in_lease(settings: Settings) -> str | None:
    """Otherwise no request would ever start: each job would be given back (ruling 9)."""
    longest = settings.worker.longest_timeout
    if settings.sending.timeout_seconds <= longest:
        return None
    lease = duration_text(settings.worker.lease_seconds)
    return f"timeout_seconds must be at most {duration_text(longest)}, to fit in lease_seconds of {lease}"


def base_delay_is_not_above_max(settings: Settings) -> str | None:
    longest = settings.retries.max_delay_seconds
    if settings.retries.base_delay_seconds <= longest:
        return None
    return f"base_delay_seconds must be at most max_delay_seconds, {duration_text(longest)}"


def window_start_is_not_above_max(settings: Settings) -> str | None:
    most = settings.flow_control.window_max
    if settings.flow_control.window_start <= most:
        return None
    return f"window_start must be at most window_max, {most}"


def one_subscription_leaves_room(settings: Settings) -> str | None:
    most = settings.worker.most_in_flight
    if settings.worker.max_in_flight <= most:
        return None
    return f"max_in_flight must be at most a quarter of worker_slots, {most}"


def handlers_end_before_rescue(settings: Settings) -> str | None:
    """Otherwise a slow handler would be taken for a dead one (ruling 8)."""
    least = 3 * settings.tasks.handler_timeout
    if settings.tasks.visibility_timeout >= least:
        return None
    return f"visibility_timeout must be at least 3 × handler_timeout, {duration_text(least)}"


CHECKS: dict[Callable[[Settings], str | None], tuple[str, ...]] = {
    timeout_fits_in_lease: ("timeout_seconds", "lease_seconds"),
    base_delay_is_not_above_max: ("base_delay_seconds", "max_delay_seconds"),
    window_start_is_not_above_max: ("window_start", "window_max"),
    one_subscription_leaves_room: ("max_in_flight", "worker_slots"),
    handlers_end_before_rescue: ("visibility_timeout", "handler_timeout"),
}
"""Each check with the names of the settings it compares."""
