"""The receivers of the demo are trusted by every Python there is, the strictest included."""

import asyncio
import ssl
from pathlib import Path

from tidings.demo.certificates import make_certificates

ADDRESS = "127.0.0.1"


async def test_the_strictest_client_trusts_the_certificate(tmp_path: Path) -> None:
    made = make_certificates(tmp_path, ADDRESS)
    shown = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    shown.load_cert_chain(made.receiver)
    trusting = ssl.create_default_context(cafile=made.authority)
    trusting.verify_flags |= ssl.VERIFY_X509_STRICT

    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"hello")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(greet, ADDRESS, 0, ssl=shown) as server:
        port = server.sockets[0].getsockname()[1]
        reader, writer = await asyncio.open_connection(ADDRESS, port, ssl=trusting)
        assert await reader.read() == b"hello"
        writer.close()
