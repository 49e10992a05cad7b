"""An example for every field of the OpenAPI document: the same name means the same thing, wherever it stands."""

from collections.abc import Mapping
from typing import Any

_MOMENT = "2026-01-31T10:00:00Z"
_OF_NAME: Mapping[str, Any] = {
    "action": "task.retried",
    "actor": "key:8f3kQ2LmZx01",
    "already_count": 2,
    "attempt_count": 3,
    "attempt_no": 3,
    "base_delay_seconds": 5,
    "biz_key": "order-7",
    "biz_type": "EMAIL_SEND",
    "callback_url": "https://example.com/in",
    "changed_by": "key:8f3kQ2LmZx01",
    "check_id": 4,
    "config_version": 6,
    "correlation_id": "checkout-7",
    "count": 120,
    "counted_to": 10_000,
    "dead_letter_id": 3,
    "description": "Invoices",
    "detail": {"reason": "maintenance"},
    "disabled_count": 0,
    "dry_run_count": 0,
    "duration_ms": 84,
    "error": "value too long",
    "error_code": "http_503",
    "event_domain": "default",
    "event_id": 12,
    "event_snapshot": {"event_type": "order.paid", "payload": {"order": 7}},
    "event_stream": "eu",
    "event_type": "order.paid",
    "events": 40,
    "external_id": "order-7",
    "failed_count": 0,
    "filter": {"subscription_id": 5},
    "final_error_code": "http_503",
    "generation": 0,
    "headers": {"x-key": "a"},
    "headline": "Waits for its next attempt.",
    "hi": 1044,
    "hole_ids": 5,
    "hole_ranges": 1,
    "holes": 1,
    "id": 12,
    "instance": "/v1/events/12",
    "lag": 40,
    "lease_resets": 0,
    "letters": 17,
    "lo": 1040,
    "looked_at": 1000,
    "made": 17,
    "matched": 2,
    "max_in_flight": 32,
    "max_retries": 3,
    "max_retry_limit": 16,
    "next_cursor": "AbCdEf0123",
    "oldest_hole_seconds": 1.5,
    "oldest_seconds": 0.4,
    "overlap_seconds": 86_400,
    "payload": {"order": 7},
    "payload_snapshot": {"order": 7},
    "pending_callback_url": "https://example.com/new",
    "pointer": "/event_type",
    "position": 1050,
    "priority": 10,
    "processes": {"worker": 2},
    "rate": 100,
    "reason": "maintenance",
    "reasons": ["3 migration steps are missing; run `tidings migrate`."],
    "refused": 0,
    "refused_count": 0,
    "remedy": "tidings subscriptions resume 5",
    "request_id": "req-5f0c1c2e8d0b4b6c9d6f3f0f5a1b2c3d",
    "requested_by": "key:8f3kQ2LmZx01",
    "requeued_as": 35,
    "requeued_status": "Pending",
    "resolution": "sent",
    "response_excerpt": "upstream is away",
    "response_status": 503,
    "result_msg": "sent",
    "retry_count": 1,
    "route_id": 1,
    "route_kind": "webhook",
    "router": "default",
    "runs": 1200,
    "saga_id": 34,
    "secret": "whsec_…",
    "sent_count": 1000,
    "skipped_count": 40,
    "started_count": 15,
    "state": "active · verified",
    "status": "sent",
    "statuses": ["sent"],
    "subscription_id": 5,
    "task_biz_type": "EMAIL_SEND",
    "task_id": 9,
    "text": "The subscription is paused.",
    "timeout_seconds": 15,
    "title": "The request is not valid",
    "total": 17,
    "type": "urn:tidings:problem:invalid",
    "worker_id": "worker-host-7",
    "worker_name": "default",
}


def with_examples(schemas: dict[str, Any]) -> None:
    """Adds one to each field that has none of its own and is no object or list of our own kind."""
    for schema in schemas.values():
        for name, field in schema.get("properties", {}).items():
            if not ("examples" in field or "enum" in field or refers(field)):
                field["examples"] = [_example_of(name, field)]


def _example_of(name: str, field: Mapping[str, Any]) -> Any:
    kinds = [field, *field.get("anyOf", ())]
    types = {one.get("type") for one in kinds}
    if any(one.get("format") == "date-time" for one in kinds):
        return _MOMENT
    if "boolean" in types:
        return field.get("default", False)
    if name == "status" and "integer" in types:
        return 0
    return _OF_NAME.get(name, field.get("default"))


def refers(field: Mapping[str, Any]) -> bool:
    """Whether what it holds is described on its own."""
    parts = [field, *field.get("anyOf", ()), field.get("items", {}), field.get("additionalProperties") or {}]
    return any("$ref" in part for part in parts if isinstance(part, Mapping))
