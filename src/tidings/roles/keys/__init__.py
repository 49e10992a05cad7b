"""Makes and revokes API keys. Of a key only its public id and a hash are kept; it is shown once, to whoever made it."""
