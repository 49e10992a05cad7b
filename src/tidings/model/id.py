"""The number by which a row is known, in every table."""

BIGGEST_ID = 2**63 - 1


def is_id(number: int) -> bool:
    """What lies outside can be no row's, and some drivers refuse even to ask for it."""
    return 0 < number <= BIGGEST_ID
