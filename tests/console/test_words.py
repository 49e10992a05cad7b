"""Every language says everything, with the same values in it, and pages say only what there are words for."""

import re
from pathlib import Path
from string import Formatter

import pytest

import tidings.console
from tidings.console.languages import DEFAULT, LANGUAGES, WORDS, chosen, words_of

CONSOLE = Path(tidings.console.__file__).parent
OTHERS = [language for language in LANGUAGES if language != DEFAULT]
# t("…") of templates; words("…"), page.go(…, "area.name") and the like of modules.
ASKED = re.compile(
    r"""\bt\(\s*["']([a-z_]+\.[A-Za-z_.]+)["']\s*[,)]|(?:words|say|go)\([^()]*?"([a-z_]+\.[A-Za-z_.]+)"[,)]"""
)


def values_of(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name}


def test_every_language_has_a_folder() -> None:
    assert {path.name for path in WORDS.iterdir() if path.is_dir()} == set(LANGUAGES)


@pytest.mark.parametrize("language", OTHERS)
def test_every_language_has_the_same_words(language: str) -> None:
    assert words_of(language).texts.keys() ^ words_of(DEFAULT).texts.keys() == set()


@pytest.mark.parametrize("language", OTHERS)
def test_a_translation_speaks_of_the_same_values(language: str) -> None:
    texts = words_of(language).texts
    wrong = {
        name for name, text in words_of(DEFAULT).texts.items() if values_of(text) != values_of(texts.get(name, ""))
    }
    assert wrong == set()


def test_chinese_is_chinese() -> None:
    """But for names and codes: whoever forgot a sentence left it in English."""
    texts = words_of("zh-Hant").texts
    said = {name: re.sub(r"\{\w+\}|`[^`]+`|tidings[\w. ]+", "", text) for name, text in texts.items()}
    assert {name: text for name, text in said.items() if re.search(r"[A-Za-z]+ [a-z]+ [a-z]+", text)} == {}


def test_everything_that_pages_say_has_words() -> None:
    texts = words_of(DEFAULT).texts
    for path in [*CONSOLE.rglob("*.html"), *CONSOLE.rglob("*.py")]:
        asked = {one or other for one, other in ASKED.findall(path.read_text("utf-8"))}
        assert {name for name in asked if name not in texts} == set(), path.name


@pytest.mark.parametrize(
    ("cookie", "accepted", "language"),
    [
        ("", "", "en"),
        ("", "zh-TW,zh;q=0.9,en;q=0.8", "zh-Hant"),
        ("", "zh-Hant-HK", "zh-Hant"),
        ("", "de-DE,en-GB;q=0.8,zh-TW;q=0.5", "en"),
        ("", "de;q=0.9, zh-HK;q=0.5", "zh-Hant"),
        ("", "zh-CN,zh-Hans;q=0.9", "en"),
        ("zh-Hant", "en", "zh-Hant"),
        ("en", "zh-TW", "en"),
        ("../../x", "zh-TW", "zh-Hant"),
        ("", ";;q=x,,,q=,zh-TW;q=abc", "en"),
    ],
)
def test_the_cookie_decides_and_else_the_browser(cookie: str, accepted: str, language: str) -> None:
    assert chosen(cookie, accepted) == language
