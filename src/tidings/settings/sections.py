"""The sections of the settings, in the order of the flow: types and limits. `defaults.toml` has the rest."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tidings.settings.kinds import choice, duration, duration_or_forever, list_of, number, size, whole_number
from tidings.settings.secret import DatabaseUrl, Secret
from tidings.settings.texts import (
    Allowed,
    Network,
    read_allowed_network,
    read_database_url,
    read_host,
    read_identifier,
    read_key,
    read_module,
    read_network,
    read_path,
)
from tidings.settings.values import read_truth

HOUR = 3600.0
DAY = 24 * HOUR


@dataclass(frozen=True, kw_only=True)
class InstallationSettings:
    data_dir: Annotated[Path, read_path]
    schema: Annotated[str, read_identifier]
    prefix: Annotated[str, read_identifier]


@dataclass(frozen=True, kw_only=True)
class DatabaseSettings:
    database_url: Annotated[DatabaseUrl, read_database_url]
    connect_patience: Annotated[float, duration(at_least=0, at_most=DAY)]
    notify: Annotated[str, choice("auto", "off")]
    urls: Mapping[str, DatabaseUrl]
    """By role; not a setting itself, but a table of them."""


@dataclass(frozen=True, kw_only=True)
class ServerSettings:
    host: Annotated[str, read_host]
    port: Annotated[int, whole_number(at_least=0, at_most=65_535)]
    metrics_port: Annotated[int, whole_number(at_least=0, at_most=65_535)]
    trusted_proxies: Annotated[tuple[Network, ...], list_of(read_network)]
    admin_key: Annotated[Secret, read_key]


@dataclass(frozen=True, kw_only=True)
class SecretsSettings:
    secret_keys: Annotated[tuple[Secret, ...], list_of(read_key)]


@dataclass(frozen=True, kw_only=True)
class IngestSettings:
    # The tables refuse more than 1 MiB themselves.
    max_payload: Annotated[int, size(at_least=2, at_most=1024**2)]
    max_nesting: Annotated[int, whole_number(at_least=1, at_most=100)]


@dataclass(frozen=True, kw_only=True)
class FlowControlSettings:
    active_jobs_max: Annotated[int, whole_number(at_least=1, at_most=1_000_000)]
    window_start: Annotated[int, whole_number(at_least=1, at_most=100_000)]
    window_max: Annotated[int, whole_number(at_least=1, at_most=100_000)]


@dataclass(frozen=True, kw_only=True)
class WorkerSettings:
    lease_seconds: Annotated[float, duration(at_least=1, at_most=DAY)]
    max_lease_resets: Annotated[int, whole_number(at_least=0, at_most=100)]
    worker_slots: Annotated[int, whole_number(at_least=4, at_most=10_000)]
    max_in_flight: Annotated[int, whole_number(at_least=1, at_most=2_500)]
    claim_hint: Annotated[bool, read_truth]

    @property
    def send_margin(self) -> float:
        """What must be left of a lease after a request's deadline, to report the result."""
        return min(5.0, self.lease_seconds / 8)

    @property
    def longest_timeout(self) -> float:
        """The deadline that fits in a lease, with as much room again between claim and start."""
        return self.lease_seconds - 2 * self.send_margin

    @property
    def most_in_flight(self) -> int:
        """To one subscription, so that there is always room for others."""
        return self.worker_slots // 4


@dataclass(frozen=True, kw_only=True)
class SendingSettings:
    timeout_seconds: Annotated[float, duration(at_least=0.1, at_most=DAY)]
    allow_http_hosts: Annotated[tuple[str, ...], list_of(read_host)]
    allow_networks: Annotated[tuple[Allowed, ...], list_of(read_allowed_network)]
    allow_ports: Annotated[tuple[int, ...], list_of(whole_number(at_least=1, at_most=65_535))]


@dataclass(frozen=True, kw_only=True)
class RetriesSettings:
    max_retry_limit: Annotated[int, whole_number(at_least=1, at_most=1000)]
    base_delay_seconds: Annotated[float, duration(at_least=0.001)]
    max_delay_seconds: Annotated[float, duration(at_least=0.001)]
    jitter: Annotated[float, number(at_least=0, at_most=1)]


@dataclass(frozen=True, kw_only=True)
class TasksSettings:
    app: Annotated[str, read_module]
    task_slots: Annotated[int, whole_number(at_least=1, at_most=10_000)]
    task_threads: Annotated[int, whole_number(at_least=1, at_most=1_000)]
    task_grace: Annotated[float, duration(at_least=0, at_most=DAY)]
    task_base_delay: Annotated[float, duration(at_least=0.001)]
    task_max_delay: Annotated[float, duration(at_least=0.001)]
    rescue_every: Annotated[float, duration(at_least=0.05, at_most=HOUR)]
    handler_timeout: Annotated[float, duration(at_least=0.1)]
    visibility_timeout: Annotated[float, duration(at_least=1)]
    archive_after: Annotated[float, duration(at_least=0)]


@dataclass(frozen=True, kw_only=True)
class RetentionSettings:
    keep_finished: Annotated[float | None, duration_or_forever(at_least=HOUR)]


@dataclass(frozen=True, kw_only=True)
class LogSettings:
    log_format: Annotated[str, choice("auto", "human", "json")]
    log_level: Annotated[str, choice("debug", "info", "warning", "error")]


@dataclass(frozen=True, kw_only=True)
class Settings:
    installation: InstallationSettings
    database: DatabaseSettings
    server: ServerSettings
    secrets: SecretsSettings
    ingest: IngestSettings
    flow_control: FlowControlSettings
    worker: WorkerSettings
    sending: SendingSettings
    retries: RetriesSettings
    tasks: TasksSettings
    retention: RetentionSettings
    log: LogSettings
