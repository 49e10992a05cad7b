"""Patterns: `*` alone, or as the last segment. `order.*` matches `order.paid` and `order.paid.eu`, not `order`."""

ANY = "*"
_TAIL = ".*"


def is_pattern(text: str) -> bool:
    """Whether this is a name or a pattern that we understand."""
    head = text.removesuffix(_TAIL) if text.endswith(_TAIL) else text
    return text == ANY or (ANY not in head and bool(head or not text))


def matches(pattern: str, name: str) -> bool:
    if pattern == ANY:
        return True
    if pattern.endswith(_TAIL):
        return name.startswith(pattern[:-1]) and len(name) > len(pattern) - 1
    return pattern == name


def rank(pattern: str) -> tuple[bool, int]:
    """Orders patterns by how specific they are: exact before longer prefix before `*`. Two that match the same name
    and have the same rank are the same pattern."""
    if pattern == ANY:
        return (False, 0)
    if pattern.endswith(_TAIL):
        return (False, len(pattern))
    return (True, 0)
