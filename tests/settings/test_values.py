"""What may be written as a value, and what is said about everything else."""

from pathlib import Path

import pytest

from tests.settings.loading import loaded, loaded_from_file, problems_in_file, problems_of
from tidings.settings.values import BadValue, duration_text, read_duration, read_size, read_truth, size_text


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("30s", 30),
        ("250ms", 0.25),
        ("5m", 300),
        ("6h", 21_600),
        ("1d", 86_400),
        ("1h30m", 5400),
        ("1h 30m", 5400),
        ("1.5h", 5400),
        ("2s500ms", 2.5),
        ("7", 7),
        (" 0.5 ", 0.5),
        (7, 7),
        (0.5, 0.5),
    ],
)
def test_a_duration_may_be_written_as(written: object, seconds: float) -> None:
    assert read_duration(written) == seconds


@pytest.mark.parametrize(
    "written",
    [
        "",
        " ",
        "s",
        "5 bananas",
        "-5s",
        "30m1h",
        "1h1h",
        "5S",
        "٣s",
        "nan",
        "inf",
        "1e3",
        "1,5s",
        True,
        [5],
        {},
    ],
)
def test_no_duration_is(written: object) -> None:
    with pytest.raises(BadValue, match="is no duration; write 30s, 5m, 6h, 1d or a number of seconds"):
        read_duration(written)


@pytest.mark.parametrize(
    ("written", "size"),
    [
        ("256KiB", 262_144),
        ("1MiB", 1_048_576),
        ("300kB", 300_000),
        ("1 mb", 1_000_000),
        ("12B", 12),
        ("7", 7),
        (7, 7),
    ],
)
def test_a_size_may_be_written_as(written: object, size: int) -> None:
    assert read_size(written) == size


@pytest.mark.parametrize("written", ["", "KiB", "1.5MiB", "256K", "1TiB", "9" * 5000, 1.5, True, []])
def test_no_size_is(written: object) -> None:
    with pytest.raises(BadValue, match="is no size; write 300kB, 256KiB, 1MiB or a number of bytes"):
        read_size(written)


def test_truths_are_written_in_four_ways_each() -> None:
    assert all(read_truth(written) for written in (True, "true", "1", "YES", "on"))
    assert not any(read_truth(written) for written in (False, "false", "0", "no", " Off "))


@pytest.mark.parametrize("written", ["", "maybe", 1, 0, []])
def test_no_truth_is(written: object) -> None:
    with pytest.raises(BadValue, match="is neither true nor false; write one of true, 1, yes, on, false"):
        read_truth(written)


def test_durations_and_sizes_are_said_in_the_largest_units() -> None:
    assert [duration_text(seconds) for seconds in (0, 0.25, 90, 86_400)] == ["0s", "250ms", "1m30s", "1d"]
    assert [size_text(size) for size in (0, 1, 300, 2048, 1024**2)] == [
        "0 bytes",
        "1 byte",
        "300 bytes",
        "2KiB",
        "1MiB",
    ]


@pytest.mark.parametrize(
    ("name", "written", "wrong"),
    [
        ("PORT", "", "'' is no whole number"),
        ("PORT", "65536", "'65536' is too much; the most is 65535"),
        ("PORT", "-1", "'-1' is too little; the least is 0"),
        ("PORT", "9" * 30, "is too much; the most is 65535"),
        ("PORT", "9" * 5000, "is no whole number"),
        ("PORT", "8420.0", "'8420.0' is no whole number"),
        ("PORT", "tcp://10.0.0.1:8420", "'tcp://10.0.0.1:8420' is no whole number"),
        ("LEASE_SECONDS", "0", "'0' is too little; the least is 1s"),
        ("LEASE_SECONDS", "9" * 400, "is too much; the most is 1d"),
        ("MAX_RETRY_LIMIT", "0", "'0' is too little; the least is 1"),
        ("BASE_DELAY_SECONDS", "0s", "'0s' is too little; the least is 1ms"),
        ("JITTER", "1.1", "'1.1' is too much; the most is 1"),
        ("JITTER", "NaN", "'NaN' is no number; write one like 0.5"),
        ("MAX_PAYLOAD", "2MiB", "'2MiB' is too much; the most is 1MiB"),
        ("MAX_PAYLOAD", "0", "'0' is too little; the least is 2 bytes"),
        ("SCHEMA", "Tidings", "'Tidings' is no plain name; write a small letter"),
        ("SCHEMA", "a" * 31, "is no plain name"),
        ("SCHEMA", 'a"; drop', "is no plain name"),
        ("SCHEMA", "pg_tidings", "is no plain name"),
        ("PREFIX", "", "'' is no plain name"),
        ("DATA_DIR", "", "'' is no path"),
        ("DATA_DIR", "~nobody-of-this-name/x", "begins with a home directory that is not known here"),
        ("HOST", "", "'' is no host"),
        ("ALLOW_HTTP_HOSTS", "http://localhost", "'http://localhost' is no host"),
        ("ALLOW_HTTP_HOSTS", "localhost:80", "'localhost:80' is no host"),
        ("ALLOW_HTTP_HOSTS", "a,,b", "an entry of the list is empty"),
        ("ALLOW_NETWORKS", "localhost", "'localhost' is no network; write one like 10.1.0.0/16 or fd00::/8"),
        ("ALLOW_NETWORKS", "10.1.2.3/8", "write 10.0.0.0/8 if you mean all of it"),
        ("ALLOW_NETWORKS", "10.1.2.3/8:80", "write 10.0.0.0/8 if you mean all of it"),
        ("ALLOW_NETWORKS", "10.0.0.0/8:70000", "has a port that does not exist"),
        ("ALLOW_NETWORKS", "10.0.0.0/8:0", "has a port that does not exist"),
        ("ALLOW_NETWORKS", "10.0.0.0/8:http", "is no network"),
        ("ALLOW_NETWORKS", "10.0.0.1:80", "is no network"),
        ("KEEP_FINISHED", "never", "write 30s, 5m, 6h, 1d or a number of seconds, or forever"),
        ("LOG_FORMAT", "xml", "'xml' is not among the choices; write one of auto, human, json"),
        ("CLAIM_HINT", "perhaps", "'perhaps' is neither true nor false"),
    ],
)
def test_a_bad_value_is_told_with_what_would_be_right(name: str, written: str, wrong: str) -> None:
    (problem,) = problems_of({f"TIDINGS_{name}": written})
    assert problem.startswith(f"environment: TIDINGS_{name}: ")
    assert wrong in problem


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("server.port = true", "True is no whole number"),
        ("server.port = 1.0", "1.0 is no whole number"),
        ("server.port = [1]", "[1] is no whole number"),
        (f"server.port = 0x{'f' * 5000}", "that number is too much; the most is 65535"),
        ("server.host = 5", "5 is no text; write it in quotes"),
        ("worker.lease_seconds = false", "False is no duration"),
        ("worker.lease_seconds = nan", "nan is no duration"),
        ("worker.lease_seconds = inf", "inf is no duration"),
        ("worker.lease_seconds = 1979-05-27", "is no duration"),
        (f"worker.lease_seconds = 0x{'f' * 5000}", "that number is too much; the most is 1d"),
        (f"worker.lease_seconds = -{'9' * 400}", "is too little; the least is 1s"),
        ("sending.allow_networks = 5", "this is no list"),
        ("sending.allow_networks = [5]", "5 is no text"),
        ("database.database_url = 5", "this is no URL of a known engine"),
        ("database.urls = 5", "database.urls is a section"),
    ],
)
def test_a_value_of_the_wrong_toml_type_is_a_problem(tmp_path: Path, line: str, wrong: str) -> None:
    (problem,) = problems_in_file(tmp_path, line)
    assert wrong in problem


def test_lists_are_arrays_in_toml_and_may_be_empty_everywhere(tmp_path: Path) -> None:
    settings = loaded_from_file(tmp_path, '[sending]\nallow_http_hosts = ["LOCALHOST", "10.0.0.1"]')
    assert settings.sending.allow_http_hosts == ("localhost", "10.0.0.1")
    assert loaded({"TIDINGS_ALLOW_HTTP_HOSTS": ""}).sending.allow_http_hosts == ()


def test_a_relative_data_dir_starts_at_the_directory_and_a_home_is_expanded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/ann")
    assert loaded({"TIDINGS_DATA_DIR": "x/y"}, directory=tmp_path).installation.data_dir == tmp_path / "x/y"
    assert loaded({"TIDINGS_DATA_DIR": "~/t"}).installation.data_dir == Path("/home/ann/t")


def test_finished_stories_are_kept_for_a_duration_or_forever() -> None:
    assert loaded({"TIDINGS_KEEP_FINISHED": "90d"}).retention.keep_finished == 90 * 86_400
    assert loaded({"TIDINGS_KEEP_FINISHED": "Forever"}).retention.keep_finished is None
