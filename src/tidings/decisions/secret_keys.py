"""Between the text of a secret, `whsec_…`, and the key that it stands for."""

from binascii import a2b_base64, b2a_base64

from tidings.errors import SignatureRefused

SECRET_PREFIX = "whsec_"


def key_of(secret: str) -> bytes:
    """Not quoted by any message."""
    key = decoded(secret)
    if not key:
        raise SignatureRefused("The secret can't be used.", f"It begins with {SECRET_PREFIX}; base64 follows.")
    return key


def decoded(secret: str) -> bytes:
    """The key, with or without the padding of its base64; nothing where it stands for none."""
    encoded = secret.removeprefix(SECRET_PREFIX)
    try:
        return a2b_base64(encoded + "=" * (-len(encoded) % 4), strict_mode=True)
    except ValueError:
        return b""


def secret_text(key: bytes) -> str:
    return SECRET_PREFIX + b2a_base64(key, newline=False).decode()
