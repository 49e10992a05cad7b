"""Measures what a system costs that has nothing to do."""
