"""`defaults.toml`, the sections and the reference page say the same."""

import tomllib
from collections import Counter
from pathlib import Path
from typing import get_type_hints

from tests.settings.loading import loaded
from tidings.reference.settings import settings_reference
from tidings.settings.assembly import defaults_text
from tidings.settings.catalog import all_settings
from tidings.settings.sections import Settings

PAGE = Path(__file__).parents[2] / "docs/reference/settings.md"


def test_defaults_and_sections_list_the_same_settings_in_the_same_order() -> None:
    document = tomllib.loads(defaults_text())
    assert document["database"].pop("urls") == {}
    written = [(section, key) for section, table in document.items() for key in table]
    assert written == [(setting.section, setting.key) for setting in all_settings()]
    assert list(document) == list(get_type_hints(Settings))


def test_each_name_is_unique_over_all_sections() -> None:
    assert max(Counter(setting.name for setting in all_settings(["event_router"])).values()) == 1


def test_each_section_and_setting_has_a_comment() -> None:
    lines = defaults_text().splitlines()
    bare = [
        line for above, line in zip(["", *lines], lines, strict=False) if line and line[0] != "#" and above[:1] != "#"
    ]
    assert bare == []


def test_the_defaults_file_is_itself_a_valid_settings_file(tmp_path: Path) -> None:
    without = loaded(directory=tmp_path)
    (tmp_path / "tidings.toml").write_text(defaults_text(), encoding="utf-8")
    assert loaded(directory=tmp_path) == without
    assert loaded(directory=tmp_path, environ={"TIDINGS_CONFIG": "tidings.toml"}) == without


def test_the_reference_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == settings_reference(), f"{PAGE} is stale; run `make docs`"
