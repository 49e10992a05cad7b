"""From the text of a secret, `whsec_…`, to the key that it stands for."""

from binascii import a2b_base64

from tidings.errors import SignatureRefused

SECRET_PREFIX = "whsec_"


def key_of(secret: str) -> bytes:
    """Not quoted by any message."""
    encoded = secret.removeprefix(SECRET_PREFIX)
    try:
        key = a2b_base64(encoded + "=" * (-len(encoded) % 4), strict_mode=True)
    except ValueError:
        key = b""
    if not key:
        raise SignatureRefused("The secret can't be used.", f"It begins with {SECRET_PREFIX}; base64 follows.")
    return key
