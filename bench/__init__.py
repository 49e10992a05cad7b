"""Programs that measure; each prints its table and fails when its bar is missed."""
