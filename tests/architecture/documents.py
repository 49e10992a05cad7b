"""Links and headings of our Markdown, as GitHub and the site see them."""

import re
import unicodedata
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
_FENCE = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`[^`\n]*`")
_LINK = re.compile(r"\]\(([^)\s]+)\)")


def documents() -> list[Path]:
    return [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")]


def links(document: Path) -> list[str]:
    """Of the text alone; what stands in code is no link."""
    return _LINK.findall(_CODE.sub("", _FENCE.sub("", document.read_text("utf-8"))))


@cache
def anchors(document: Path) -> frozenset[str]:
    headings = re.findall(r"^#+ (.+)$", _FENCE.sub("", document.read_text("utf-8")), re.MULTILINE)
    found: list[str] = []
    for heading in map(_slug, headings):
        same = sum(one == heading or re.fullmatch(rf"{re.escape(heading)}-\d+", one) is not None for one in found)
        found.append(f"{heading}-{same}" if same else heading)
    return frozenset(found)


def _slug(heading: str) -> str:
    plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading)
    kept = "".join(sign for sign in plain.lower() if sign in " -_" or unicodedata.category(sign)[0] in "LN")
    return kept.strip().replace(" ", "-")


def broken(document: Path, link: str) -> str:
    """What is wrong with it; nothing for those that lead to other servers."""
    if re.match(r"[a-z]+:", link):
        return ""
    path, _, anchor = link.partition("#")
    target = (document.parent / path).resolve() if path else document
    if not target.exists():
        return "leads nowhere"
    if ROOT not in (target, *target.parents):
        return "leads out of the repository"
    if anchor and (target.suffix != ".md" or anchor not in anchors(target)):
        return "has an anchor that is no heading there"
    return ""
