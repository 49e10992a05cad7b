"""Puts a subscription's URL in force: it alone may call an endpoint verified."""
