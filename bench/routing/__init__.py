"""Measures how fast the router is, beside bare SQL that writes the same rows."""
