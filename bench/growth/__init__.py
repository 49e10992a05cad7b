"""Measures what each step costs when little waits and when much does."""
