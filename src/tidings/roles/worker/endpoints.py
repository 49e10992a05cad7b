"""Where a job goes: a subscription with its secrets opened, and the request that is made for one attempt."""

from dataclasses import dataclass

from tidings.courier import Request
from tidings.courier.signing import signature_headers, webhook_id
from tidings.roles.worker.operations import EndpointRow, LeasedJob
from tidings.vault import Vault, open_headers, valid_secrets


@dataclass(frozen=True)
class Endpoint:
    """As it was when its jobs were leased. `headers` are the subscription's own, `secrets` those that were valid."""

    row: EndpointRow
    headers: tuple[tuple[str, str], ...]
    secrets: tuple[str, ...]
    timeout: float
    max_in_flight: int

    @property
    def may_be_sent_to(self) -> bool:
        return self.row.active and self.row.verified


def open_endpoint(row: EndpointRow, vault: Vault, timeout: float, max_in_flight: int, now: float) -> Endpoint:
    """SecretsUnusable if the key ring does not open them. `now` is the server's."""
    headers = open_headers(vault, row.id, row.headers)
    secrets = valid_secrets(vault, row.id, row.secrets, now)
    return Endpoint(row, tuple(headers.items()), tuple(secrets), timeout, max_in_flight)


def request_of(job: LeasedJob, endpoint: Endpoint, installation_id: str, now: float) -> Request:
    """One attempt, signed with every secret that is valid. `now` is the server's, so that no receiver finds a request
    too old or too new because the clock of this machine is wrong."""
    body = job.payload.encode()
    message = webhook_id(installation_id, job.event_id, job.subscription_id)
    return Request(
        endpoint.row.callback_url,
        body,
        (
            ("content-type", "application/json"),
            *signature_headers(message, int(now), body, endpoint.secrets),
            ("tidings-event-type", job.event_type),
            ("tidings-correlation-id", job.correlation_id),
            ("tidings-attempt", str(job.attempt_no)),
            *endpoint.headers,
        ),
        endpoint.timeout,
    )
