"""Programs that measure; each prints its table and says which of its targets are missed."""
