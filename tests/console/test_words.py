"""Every language says everything, with the same values in it, and pages say only what there are words for."""

import datetime
import re
from pathlib import Path
from string import Formatter

import pytest

import tidings.console
from tidings.api.problems import KINDS
from tidings.console.languages import DEFAULT, LANGUAGES, WORDS, chosen, words_of
from tidings.console.saying import translated, why_not, wrong_fields
from tidings.decisions import explaining
from tidings.decisions.answers import ANSWERS, say
from tidings.decisions.subscribing import LIMITS
from tidings.errors import NotFound, RouteRefused

CONSOLE = Path(tidings.console.__file__).parent
# What forms ask for.
FIELDS = (
    *("event_type", "event_domain", "event_stream", "callback_url", "description", "verification", "headers", "secret"),
    *(*LIMITS, "task_biz_type", "name", "scopes", "days", "reason", "to", "rate", "ids", "id"),
)
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
    """But for errors: what the product says of them is English already."""
    different = words_of(language).texts.keys() ^ words_of(DEFAULT).texts.keys()
    assert {name for name in different if not name.startswith("refused.")} == set()


@pytest.mark.parametrize("language", OTHERS)
def test_every_error_has_words_by_its_code_and_every_field_by_its_name(language: str) -> None:
    wanted = {f"refused.code.{code}" for code in KINDS} | {f"refused.field.{field}" for field in FIELDS}
    assert wanted - words_of(language).texts.keys() == set()


@pytest.mark.parametrize("language", OTHERS)
def test_an_error_is_said_by_its_field_or_its_code_and_then_in_its_own_words(language: str) -> None:
    words = words_of(language)
    wrong = RouteRefused("event_type 'a b' is no pattern.", "For example order.*", field="event_type")
    said = wrong_fields(words, wrong)["event_type"]
    assert said.startswith(words("refused.route.event_type"))
    assert "event_type 'a b' is no pattern. For example order.*" in said
    assert why_not(words, NotFound("There is no event 7.")).startswith(words("refused.code.not_found"))
    assert wrong_fields(words_of(DEFAULT), wrong) == {
        "event_type": "event_type 'a b' is no pattern. For example order.*"
    }


@pytest.mark.parametrize("language", OTHERS)
@pytest.mark.parametrize("name", ANSWERS)
def test_every_answer_of_why_can_be_said_in_every_language(name: str, language: str) -> None:
    values: dict[str, object] = {value: f"<{value}>" for value in values_of(ANSWERS[name])}
    kinds = {"span": datetime.timedelta(minutes=5), "by": say("route", id=7), "who": say("somebody")}
    answer = say(name, **values | {value: kind for value, kind in kinds.items() if value in values})
    said = translated(words_of(language), "why", answer)
    assert re.search("[\u4e00-\u9fff（]", said)
    assert all(str(value) in said for value in values.values() if value not in {f"<{kind}>" for kind in kinds})
    if "span" in values:
        assert "5 分" in said
    if "by" in values:
        assert "路由規則 7" in said
    assert translated(words_of(DEFAULT), "why", answer) == str(answer)


def test_no_answer_of_why_is_there_that_nobody_gives() -> None:
    text = Path(explaining.__file__).read_text("utf-8")
    given = set(re.findall(r'say\(\s*"(\w+)"', text))
    given |= {f"{status}_{things}" for status in ("sent", "dry_run") for things in ("task", "deliveries")}
    assert given == set(ANSWERS)


def test_chinese_has_its_own_punctuation() -> None:
    """Beside Chinese signs and values; not within codes, which stand in backticks or between Latin letters."""
    texts = words_of("zh-Hant").texts
    plain = {name: re.sub(r"`[^`]+`", "", text) for name, text in texts.items()}
    beside = re.compile(r"[\u4e00-\u9fff」）}][,;:!?()]|[,;:!?()][\u4e00-\u9fff「（]|\)[{]|[,;]\{")
    assert {name: text for name, text in plain.items() if beside.search(text)} == {}


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
    sources = [path.read_text("utf-8") for path in (*CONSOLE.rglob("*.html"), *CONSOLE.rglob("*.py"))]
    asked = {one or other for source in sources for one, other in ASKED.findall(source)}
    assert len(asked) > len(texts) / 2
    assert {name for name in asked if name not in texts and not name.startswith("refused.")} == set()


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
