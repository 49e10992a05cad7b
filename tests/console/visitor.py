"""Somebody who uses the console without a browser: keeps cookies, sends forms as a page of ours would."""

import re
from typing import Any, Self

import httpx

TOKEN = re.compile(r'name="csrf" value="([0-9a-f]{64})"')


class Visitor:
    def __init__(self, url: str, **headers: str) -> None:
        self.url = url
        self.client = httpx.AsyncClient(
            base_url=url, headers={"Accept": "text/html", "Accept-Language": "en", **headers}, timeout=20
        )
        self.token = ""

    async def get(self, path: str, **headers: str) -> httpx.Response:
        response = await self.client.get(path, headers=headers)
        if found := TOKEN.search(response.text):
            self.token = found[1]
        return response

    async def text(self, path: str) -> str:
        """Of a page that is there."""
        response = await self.get(path)
        assert response.status_code == 200, f"{path}: {response.status_code}\n{response.text}"
        return response.text

    async def post(self, path: str, headers: dict[str, str] | None = None, /, **fields: Any) -> httpx.Response:
        """A form with the token of the last page, from the console's own origin. A list is a field many times."""
        sent = {"Origin": self.url, "Sec-Fetch-Site": "same-origin"} if headers is None else headers
        return await self.client.post(path, data={"csrf": self.token, **fields}, headers=sent)

    async def after(self, path: str, **fields: Any) -> str:
        """The page that a form leads to."""
        response = await self.post(path, **fields)
        assert response.status_code == 303, f"{path}: {response.status_code}\n{response.text}"
        return await self.text(response.headers["location"])

    async def sign_in(self, key: str, **fields: Any) -> httpx.Response:
        await self.get("/sign-in")
        response = await self.post("/sign-in", key=key, **fields)
        if response.status_code == 303:
            # The session has a token of its own.
            await self.get(response.headers["location"])
        return response

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.client.aclose()
