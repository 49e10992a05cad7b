"""The role route_admin on both engines."""
