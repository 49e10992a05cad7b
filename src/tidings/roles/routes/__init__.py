"""Writes routes, opens and closes gates, gives routers their commands. Every change is audited where it is made."""
