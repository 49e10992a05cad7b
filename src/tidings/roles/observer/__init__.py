"""Reads everything but secrets, changes nothing: what people and `doctor` ask. Its parts share the statements."""
