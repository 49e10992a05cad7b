"""Keeps steps going: loop, pacing, stopping. Knows no role by name."""
