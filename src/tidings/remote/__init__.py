"""`tidings.Client` and `tidings.AsyncClient`: the HTTP API, called from anywhere, with typed answers and errors."""

from tidings.remote.clients import AsyncClient, Client
from tidings.remote.errors import ApiError, ApiUnreachable

__all__ = ["ApiError", "ApiUnreachable", "AsyncClient", "Client"]
