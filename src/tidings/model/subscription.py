"""How an endpoint proves that it wants our events before anything is sent to it."""

from enum import StrEnum


class Verification(StrEnum):
    PROOF = "proof"
    ECHO = "echo"
    NONE = "none"
