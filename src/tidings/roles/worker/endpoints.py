"""Where a job goes: a subscription with its secrets opened, and the request that is made for one attempt."""

import time
from dataclasses import dataclass

from tidings.courier import Request
from tidings.courier.signing import signature_headers, webhook_id
from tidings.roles.worker.operations import EndpointRow, LeasedJob
from tidings.vault import Vault, open_headers, open_secret, valid_secrets

_MICROSECONDS = 1_000_000


@dataclass(frozen=True)
class Endpoint:
    """`headers` are the subscription's own."""

    row: EndpointRow
    headers: tuple[tuple[str, str], ...]
    timeout: float
    max_in_flight: int

    @property
    def may_be_sent_to(self) -> bool:
        return self.row.active and self.row.verified


def open_endpoint(row: EndpointRow, vault: Vault, timeout: float, max_in_flight: int) -> Endpoint:
    """SecretsUnusable if the key ring does not open them."""
    headers = open_headers(vault, row.id, row.headers) if row.headers else {}
    return Endpoint(
        row,
        tuple(headers.items()),
        row.timeout_seconds or timeout,
        min(row.max_in_flight or max_in_flight, max_in_flight),
    )


def request_of(job: LeasedJob, endpoint: Endpoint, vault: Vault, installation_id: str) -> Request:
    """One attempt, signed now with every secret that is valid now."""
    now = time.time()
    body = job.payload.encode()
    secrets = valid_secrets(
        endpoint.row.secrets or b"",
        int(now * _MICROSECONDS),
        lambda entry: open_secret(vault, endpoint.row.id, entry),
    )
    signed = signature_headers(webhook_id(installation_id, job.event_id, job.subscription_id), int(now), body, secrets)
    return Request(
        endpoint.row.callback_url,
        body,
        (
            ("content-type", "application/json"),
            *signed,
            ("tidings-event-type", job.event_type),
            ("tidings-correlation-id", job.correlation_id),
            ("tidings-attempt", str(job.attempt_no)),
            *endpoint.headers,
        ),
        endpoint.timeout,
    )
