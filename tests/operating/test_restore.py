"""A dump that is restored is a whole installation, and the router goes on with it as the page says."""

import os
import shutil
import subprocess
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.guide.pages import Block, blocks
from tests.support.commands import Shell, run, single_login
from tests.support.database import Database
from tidings.db.embedded.binaries import find_binaries

pytestmark = pytest.mark.slow
PAGE = Path(__file__).parents[2] / "docs" / "operating" / "backup.md"


def marked(language: str, engine: Database) -> Block:
    (block,) = (
        one for one in blocks(PAGE) if one.language == language and "run" in one.words and one.is_for(engine.kind)
    )
    return block


class Server:
    """The server's own programs, as its administrator uses them."""

    def __init__(self, database: Database, folder: Path) -> None:
        self.database = database
        self.folder = folder
        parts = urlsplit(database.admin_url)
        self.environment = {
            "PATH": os.pathsep.join([str(find_binaries().folder), os.environ["PATH"]]),
            "PGHOST": parts.hostname or "",
            "PGPORT": str(parts.port),
            "PGUSER": "postgres",
            "PGPASSWORD": parts.password or "",
            "MYSQL_HOST": parts.hostname or "",
            "MYSQL_TCP_PORT": str(parts.port),
            "MYSQL_PWD": parts.password or "",
        }

    def run(self, command: str) -> None:
        ended = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", command],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert ended.returncode == 0, f"{command}\n{ended.stdout}\n{ended.stderr}"

    def dump(self) -> None:
        """As the page says, with this installation's names and this server's address."""
        command = marked("sh", self.database).text.replace("tidings url schema_owner", "echo $OWNER")
        self.environment["OWNER"] = self.database.url("schema_owner")
        schema = self.database.names.schema
        at = f"mariadb-dump --host={self.environment['MYSQL_HOST']} --user=root"
        self.run(
            command.replace("=tidings ", f"={schema} ")
            .replace(" tidings >", f" {schema} >")
            .replace("mariadb-dump", at)
        )

    def restore(self) -> None:
        schema = self.database.names.schema
        if self.database.family == "postgresql":
            self.run(f'psql -q -c "DROP SCHEMA {schema} CASCADE" postgres')
            self.run("psql -q -v ON_ERROR_STOP=1 -f tidings.sql postgres")
        else:
            client = f"mariadb --host={self.environment['MYSQL_HOST']} --user=root"
            self.run(f'{client} -e "DROP DATABASE {schema}"')
            self.run(f"{client} < tidings.sql")


async def move_counter(database: Database) -> None:
    text = marked("sql", database).text.replace("tidings.events", f"{database.names.schema}.events")
    if database.family == "postgresql":
        await database.sql(text, role="admin")
        return
    engine = await database.open("admin", schema="")
    async with engine.bare_session() as session:
        for statement in text.strip().split(";\n"):
            await session.command(statement)


async def test_a_restored_installation_goes_on_and_gives_no_id_twice(throwaway: Database, tmp_path: Path) -> None:
    server, shell = Server(throwaway, tmp_path), Shell(throwaway, tmp_path)
    if throwaway.family == "mysql" and not shutil.which("mariadb-dump"):
        pytest.skip("mariadb-dump is missing: apt-get install mariadb-client")
    shell.says("routes", "add", "--type", "*")
    shell.says("gates", "open", "--all")
    await throwaway.sql(
        "INSERT INTO subscriptions (event_type, callback_url, active, verified)"
        " VALUES ('*', 'https://example.com/', true, true)"
    )
    await publish(throwaway, shell, 3)
    server.dump()
    await publish(throwaway, shell, 2)
    server.restore()
    assert await throwaway.value("SELECT max(id) FROM events") == 3

    await move_counter(throwaway)
    run("migrate", cwd=tmp_path, env=single_login(throwaway))
    found = shell.doctor()
    assert {name for name, finding in found.items() if finding["health"] != "right"} == {"durability"}
    await publish(throwaway, shell, 2)
    assert await throwaway.value("SELECT min(id) FROM events WHERE id > 3") > 1_000_000
    assert await throwaway.value("SELECT count(*) FROM webhook_delivery_sagas") == 5
    shell.says("run", "router", "--once")
    assert await throwaway.value("SELECT count(*) FROM route_holes") == 0
    shell.says("reconcile")


async def publish(database: Database, shell: Shell, many: int) -> None:
    rows = ", ".join(["('order.paid', '{}')"] * many)
    await database.sql(f"INSERT INTO events (event_type, payload) VALUES {rows}", role="event_ingest_writer")
    shell.says("run", "router", "--once")
