"""A reader of the guide: one shell that keeps what it was told, programs beside it, and a database to write to."""

import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from tests.guide.pages import Block, blocks
from tests.support.forking import Forked
from tests.support.processes import INHERITED, Process
from tests.support.waiting import wait_until

BIN = Path(sys.executable).parent
_TIDINGS = (sys.executable, "-m", "tidings")
# A command that needs no shell: nothing is piped, kept, put in or counted on.
_PLAIN = re.compile(r"tidings [^|<>$&;`]*$")
_READY = re.compile(r"Ctrl-C stops everything|Ctrl-C ends it")
_SECONDS = 60


class Reader:
    """Does what a page says, block by block. `replaced` is what a reader puts in the place of the guide's names."""

    def __init__(
        self, folder: Path, environment: Mapping[str, str], start: Callable[[Process], Process], **replaced: str
    ) -> None:
        self.folder = folder
        self.replaced = replaced
        self._start = start
        bare = {name: os.environ[name] for name in INHERITED if name in os.environ}
        self._environment = {
            **bare,
            "COLUMNS": "160",
            "TIDINGS_LOG_LEVEL": "warning",
            **environment,
        }
        self.said: dict[str, str] = {}

    def follow(self, page: Path, engine: str, sql: Callable[[str, str], None] | None = None) -> None:
        """`sql` runs a text as the server's administrator, or as the application."""
        all = [block for block in blocks(page) if block.is_for(engine)]
        for block in sorted(all, key=lambda block: "first" not in block.words):
            self._do(block, sql)

    def _do(self, block: Block, sql: Callable[[str, str], None] | None) -> None:
        text = self._put_in(block.text)
        if block.file:
            (self.folder / block.file).write_text(text, "utf-8")
        elif "beside" in block.words:
            self._begin(text)
        elif block.language == "sql" and block.words & {"run", "first"}:
            assert sql is not None
            sql(text, "admin" if "first" in block.words else "app")
        elif "until" in block.words:
            wait_until(lambda: self._shell(text)[0] == 0, _SECONDS, str(block))
        elif "run" in block.words:
            command = text if block.language == "sh" else _as_program(self.folder, text)
            code, said = self._shell(command)
            assert code == block.exit, f"{block} ended with {code}:\n{text}\n{said}"
            assert "Traceback" not in said, f"{block}:\n{said}"
            self.said[str(block)] = said

    def _put_in(self, text: str) -> str:
        for name, value in self.replaced.items():
            text = text.replace(name, value)
        return text

    def _begin(self, text: str) -> None:
        process = Process([*_TIDINGS, *_words(text)], self._environment, cwd=self.folder)
        self._start(process)
        if re.match(r"tidings (up|listen)", text):
            process.wait_for_line(_READY.pattern, _SECONDS)

    def _shell(self, text: str) -> tuple[int, str]:
        """Line by line, until one fails."""
        said = ""
        for line in _lines(text):
            code, says = self._command(_words(line)) if _PLAIN.match(line) else self._bash(line)
            said += says
            if code:
                return code, said
        return 0, said

    def _command(self, words: list[str]) -> tuple[int, str]:
        """`tidings …`, without a shell, and so without the second that it takes to be loaded."""
        with tempfile.TemporaryFile() as output:
            forked = Forked([*_TIDINGS, *words], self._environment, self.folder, output.fileno(), output.fileno())
            try:
                code = forked.wait(_SECONDS)
            finally:
                forked.kill()
            output.seek(0)
            return code, output.read().decode()

    def _bash(self, line: str) -> tuple[int, str]:
        """What was exported stays so, as in one terminal."""
        kept = self.folder / ".exported"
        ended = subprocess.run(
            ["bash", "-c", f"set -euo pipefail\n{line}\nenv -0 > {kept}\n"],
            cwd=self.folder,
            env={**self._environment, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"},
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
        if ended.returncode == 0:
            exported = (one.partition("=") for one in kept.read_text("utf-8").split("\0") if one)
            self._environment = {name: value for name, _, value in exported}
        return ended.returncode, ended.stdout + ended.stderr


def _lines(text: str) -> list[str]:
    return [line for line in text.replace("\\\n", " ").splitlines() if line.strip()]


def _words(line: str) -> list[str]:
    return shlex.split(line, comments=True)[1:]


def _as_program(folder: Path, text: str) -> str:
    (folder / "program.py").write_text(text, "utf-8")
    return "python program.py"


def guide_urls(admin_url: str, app_url: str) -> dict[str, str]:
    """The guide's addresses, and those that are meant here."""
    admin, app = urlsplit(admin_url), urlsplit(app_url)
    return {
        "postgresql://postgres:secret@db.internal/shop": admin_url,
        "mariadb://root:secret@db.internal": f"mariadb://{admin.netloc}",
        "postgresql://app:secret@localhost/shop": app_url,
        'host="localhost", user="app"': f'host="{app.hostname}", port={app.port}, user="app"',
    }
