"""Three worker hosts, two orchestrator hosts and a database, each with its own address."""

from pathlib import Path

import pytest

from tests.machines.apart import run_apart

pytestmark = [pytest.mark.slow, pytest.mark.alone, pytest.mark.timeout(240)]


@pytest.mark.quick_on("mariadb")
def test_hosts_that_are_cut_off_and_come_back_lose_nothing(own_kind: str, tmp_path: Path) -> None:
    run_apart("hosts", own_kind, "small", tmp_path, 200)


@pytest.mark.full
@pytest.mark.timeout(600)
def test_one_host_after_the_other_may_be_cut_off(own_kind: str, tmp_path: Path) -> None:
    run_apart("hosts", own_kind, "big", tmp_path, 500)


@pytest.mark.full
@pytest.mark.timeout(180)
def test_a_server_whose_host_is_gone_without_a_word_is_noticed_and_another_one_is_found(
    own_kind: str, tmp_path: Path
) -> None:
    """Half-open connections are noticed within about 20 s."""
    run_apart("silence", own_kind, "small", tmp_path, 150)
