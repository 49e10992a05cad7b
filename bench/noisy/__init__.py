"""Measures what a bad endpoint costs the good ones."""
