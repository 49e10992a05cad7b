"""The product with another HTTP client, for comparison: `python -m bench.deliver.with_aiohttp run worker`.

Without a guard, a resolver and an excerpt of the response, which would cost it a little more.
"""

from time import perf_counter
from typing import Any

import aiohttp

from tidings import processes
from tidings.cli.main import main
from tidings.courier import Guard, Request, Result
from tidings.courier.error_codes import CONNECT_ERROR


class AiohttpCourier:
    """As much of a courier as a sink needs that always answers."""

    def __init__(self, guard: Guard, *, connections: int, per_host: int, excerpt_size: int = 0) -> None:
        self._connections, self._per_host = connections, per_host
        self._session: aiohttp.ClientSession | None = None

    async def send(self, request: Request) -> Result:
        began = perf_counter()
        session = self._session or self._open()
        timeout = aiohttp.ClientTimeout(total=request.timeout)
        try:
            async with session.post(
                request.url, data=request.body, headers=request.headers, allow_redirects=False, timeout=timeout
            ) as response:
                await response.content.read(64 * 1024)
                return Result(response.status, None, b"", None, round((perf_counter() - began) * 1000))
        except (aiohttp.ClientError, TimeoutError):
            return Result(None, CONNECT_ERROR, b"", None, round((perf_counter() - began) * 1000))

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    def _open(self) -> aiohttp.ClientSession:
        settings: dict[str, Any] = {"auto_decompress": False, "cookie_jar": aiohttp.DummyCookieJar()}
        connector = aiohttp.TCPConnector(limit=self._connections, limit_per_host=self._per_host)
        self._session = aiohttp.ClientSession(connector=connector, **settings)
        return self._session


if __name__ == "__main__":
    processes.Courier = AiohttpCourier  # type: ignore[assignment, attr-defined]  # in the place of the product's own
    main()
