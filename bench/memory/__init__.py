"""Measures how much memory each role takes when much waits."""
