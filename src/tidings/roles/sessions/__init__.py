"""Remembers who is signed in to the console. A session lives no longer than the key that began it."""
