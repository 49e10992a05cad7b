"""Tells whose key a request carries, and remembers when it was last used."""
