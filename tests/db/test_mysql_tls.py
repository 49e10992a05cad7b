"""TLS towards MariaDB: asked for in the URL, verified, and never silently left out."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

from tests.support.servers import MariaDBServer
from tidings.db.engine import open_engine
from tidings.db.mysql_tls import tls_context
from tidings.db.names import Names
from tidings.db.statements import Statement
from tidings.errors import DatabaseUrlInvalid, ServerUnreachable

pytestmark = pytest.mark.one_engine("mariadb", reason="on PostgreSQL asyncpg reads sslmode from the URL itself")
CIPHER = Statement("test.cipher", "SHOW SESSION STATUS LIKE 'Ssl_cipher'", ())


class TlsServer(MariaDBServer):
    certificate: trustme.LeafCert

    def _command(self) -> list[str]:
        chain = self._write("chain.pem", self.certificate.cert_chain_pems[0].bytes().decode())
        key = self._write("key.pem", self.certificate.private_key_pem.bytes().decode())
        return [*super()._command(), f"--ssl-cert={chain}", f"--ssl-key={key}"]


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="module")
def tls_url(authority: trustme.CA) -> Iterator[str]:
    if not MariaDBServer.available():
        pytest.skip(MariaDBServer.available().reason)
    server = TlsServer()
    server.certificate = authority.issue_cert("localhost")
    with server:
        yield server.admin_url


async def cipher(url: str) -> str:
    engine = await open_engine(url, owner="test", names=Names(), schema="")
    async with engine.transaction() as transaction:
        row = await transaction.row(CIPHER)
    await engine.close()
    assert row is not None
    return str(row["Value"])


async def test_a_connection_is_encrypted_when_the_url_asks_for_it(tls_url: str) -> None:
    assert await cipher(f"{tls_url}?ssl-mode=REQUIRED") != ""
    assert await cipher(tls_url) == ""


async def test_a_server_of_another_authority_is_refused(tls_url: str, authority: trustme.CA, tmp_path: Path) -> None:
    ours, other = tmp_path / "ours.pem", tmp_path / "other.pem"
    authority.cert_pem.write_to_path(str(ours))
    trustme.CA().cert_pem.write_to_path(str(other))
    assert await cipher(f"{tls_url}?ssl-mode=VERIFY_CA&ssl-ca={ours}") != ""
    with pytest.raises(ServerUnreachable):
        await cipher(f"{tls_url}?ssl-mode=VERIFY_CA&ssl-ca={other}")


async def test_the_name_of_the_server_is_verified_too(tls_url: str, authority: trustme.CA, tmp_path: Path) -> None:
    ours = tmp_path / "ours.pem"
    authority.cert_pem.write_to_path(str(ours))
    assert await cipher(tls_url.replace("127.0.0.1", "localhost") + f"?ssl-ca={ours}") != ""
    with pytest.raises(ServerUnreachable):
        await cipher(f"{tls_url}?ssl-ca={ours}")


@pytest.mark.parametrize("options", [{"ssl": "true"}, {"ssl-mode": "maybe"}, {"ssl-ca": "/nowhere.pem"}])
def test_options_that_are_not_understood_are_refused(options: dict[str, str]) -> None:
    with pytest.raises(DatabaseUrlInvalid):
        tls_context(options)
