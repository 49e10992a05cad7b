"""How many events a second are taken in."""
