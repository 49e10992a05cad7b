"""Numbered migrations for each family of engines, and what applies them."""
