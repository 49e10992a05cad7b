"""The lease cleaner: alone ends stale leases, and never touches a saga."""
