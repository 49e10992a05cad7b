"""Whatever is written, it is either settings or a SettingsInvalid with one clean line per problem."""

import tempfile
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.settings.loading import ROLES, loaded
from tidings.errors import SettingsInvalid
from tidings.settings.catalog import all_settings
from tidings.settings.values import duration_text, read_duration

NAMES = st.sampled_from([setting.name for setting in all_settings(ROLES)])
SCRAPS = st.sampled_from(["ms", "1e400", "inf", "::1", "KiB", "://", "10.0.0.0/8", "9" * 320, *"5sh-,/%~@"])
TEXTS = st.text() | st.lists(SCRAPS).map("".join) | st.text(st.characters(codec=None, categories=["Cs"]))
TOML_SCRAPS = st.sampled_from(["[worker]", "[[log]]", "lease_seconds", "inf", "0xff", *"\n='\"[{"])
TOML = st.lists(TOML_SCRAPS | st.text(max_size=5)).map("".join)
LEAVES = st.text() | st.integers() | st.integers(max_value=-(2**20_000)) | st.floats() | st.booleans() | st.datetimes()
RAW_VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=5)

# A busy machine is no failure.
unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def load_or_clean_problems(**sources: object) -> None:
    problems = ["none"]
    try:
        loaded(**sources)  # type: ignore[arg-type]
    except SettingsInvalid as invalid:
        problems = invalid.problems
    assert problems
    assert [problem for problem in problems if not problem.isprintable()] == []


@unhurried
@given(name=NAMES, text=TEXTS)
def test_any_text_may_be_the_value_of_any_variable_or_flag(name: str, text: str) -> None:
    load_or_clean_problems(environ={f"TIDINGS_{name.upper()}": text})
    load_or_clean_problems(flags={name: text})


@unhurried
@given(name=st.text(), text=st.text())
def test_any_text_may_be_the_name_of_a_variable_or_flag(name: str, text: str) -> None:
    load_or_clean_problems(environ={f"TIDINGS_{name}": text}, flags={name: text})


@unhurried
@given(name=st.text())
def test_any_text_may_be_the_name_of_the_file(name: str) -> None:
    load_or_clean_problems(environ={"TIDINGS_CONFIG": f"missing{name}"})


@unhurried
@given(name=NAMES, raw=RAW_VALUES)
def test_any_toml_value_may_stand_for_any_setting(name: str, raw: object) -> None:
    load_or_clean_problems(environ={f"TIDINGS_{name.upper()}": raw})


@unhurried
@given(content=st.binary() | TOML.map(str.encode))
def test_any_bytes_may_be_the_file(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as directory:
        (Path(directory) / "tidings.toml").write_bytes(content)
        load_or_clean_problems(directory=Path(directory))


@unhurried
@given(milliseconds=st.integers(min_value=0, max_value=10**13))
def test_a_duration_that_is_said_is_read_as_the_same(milliseconds: int) -> None:
    assert read_duration(duration_text(milliseconds / 1000)) == milliseconds / 1000
