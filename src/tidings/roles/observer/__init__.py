"""Reads everything but secrets, changes nothing: what people and `doctor` ask about an installation."""
