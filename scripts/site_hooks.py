"""Makes pages of the documents that lie outside docs/, and shows files of the repository as the text they are."""

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "examples").rglob("*.md"))]
_LINK = re.compile(r"(?<=\]\()(?!\w+:|#)([^)#\s]+)")
_FENCE = re.compile(r"^(?P<mark> *```)(?P<language>\w+)[^\n`]*$", re.MULTILINE)
_MERMAID = re.compile(r"^```mermaid\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def on_files(files: Files, config: Any) -> Files:
    """What lies at the root is found at the root of the site; examples are files to look at."""
    for page in PAGES:
        files.append(File.generated(config, str(page.relative_to(ROOT)), content=_moved(page)))
    for path in [ROOT / "LICENSE", *_looked_at()]:
        files.append(File.generated(config, f"{path.relative_to(ROOT)}.txt", content=path.read_text("utf-8")))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Links out of docs/ lead to those; of what stands behind a language only the tests know what it means."""
    if not page.file.generated_by:
        markdown = _LINK.sub(lambda link: _from_docs(DOCS / page.file.src_uri, link[1]), markdown)
    shown = _MERMAID.sub(r"<details><summary>As a Mermaid diagram</summary><pre>\1</pre></details>", markdown)
    return _FENCE.sub(r"\g<mark>\g<language>", shown)


def _looked_at() -> list[Path]:
    return [path for path in sorted((ROOT / "examples").rglob("*")) if path.suffix in (".py", ".sql")]


def _moved(page: Path) -> str:
    """From its place in the repository to its place in the site, where docs/ is the root."""

    def moved(link: re.Match[str]) -> str:
        target = (page.parent / link[1]).resolve()
        return _shown(target, page.parent.relative_to(ROOT))

    return _LINK.sub(moved, page.read_text("utf-8"))


def _from_docs(page: Path, link: str) -> str:
    target = (page.parent / link).resolve()
    if DOCS in target.parents:
        return link
    return _shown(target, page.parent.relative_to(DOCS))


def _shown(target: Path, folder: Path) -> str:
    """The way from a folder of the site to a file of the repository."""
    inside = target.relative_to(DOCS if DOCS in target.parents else ROOT)
    up = "../" * len(folder.parts)
    if target.is_dir():
        near = next(one for one in (inside, *inside.parents) if (ROOT / one / "README.md").is_file())
        return f"{up}{near / 'README.md'}"
    is_page = target.suffix == ".md" or DOCS in target.parents
    return f"{up}{inside}" if is_page else f"{up}{inside}.txt"
