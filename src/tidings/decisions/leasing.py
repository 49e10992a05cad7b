"""Leases: how often one may expire, and whether there is time for a request before it does."""


def is_poisoned(lease_resets: int, max_lease_resets: int) -> bool:
    """Whether a lease that has expired once more is not to be reset again."""
    return lease_resets >= max_lease_resets


def has_time(left: float, timeout: float, margin: float) -> bool:
    """Whether a request with this deadline, and the report about it, fit into what is left of the lease."""
    return timeout + margin <= left
