"""Measures what a transaction costs that somebody has left open."""
