"""What retention has removed: counts that stay when the rows are gone."""

FATES = ("sent", "dry_run", "failed", "disabled", "skipped")
"""What became of a routed event; one that came to several things counts as the first of these."""

COUNTED = (
    "events",
    *FATES,
    "attempts",
    "wanted_deliveries",
    "wanted_tasks",
    "sagas",
    "delivered",
    "dead",
    "jobs",
    "dead_letters",
    "route_dead_letters",
    "tasks",
)
