"""Ids are unique, also in processes that were forked from one."""

import multiprocessing
import uuid

from tidings.ids import new_correlation_id, new_request_id


def test_ids_are_unique_and_of_their_form() -> None:
    made = {new_correlation_id() for _ in range(1000)}
    assert len(made) == 1000
    for one in made:
        read = uuid.UUID(one)
        assert (str(read), read.version, read.variant) == (one, 4, uuid.RFC_4122)
    assert len({new_request_id() for _ in range(1000)}) == 1000


def test_forked_processes_make_ids_of_their_own() -> None:
    new_correlation_id()
    with multiprocessing.get_context("fork").Pool(2) as pool:
        made = [one for some in pool.starmap(_some, [()] * 8, chunksize=1) for one in some]
    made += _some()
    assert len({*made}) == len(made)


def _some() -> list[str]:
    return [new_correlation_id() for _ in range(100)]
