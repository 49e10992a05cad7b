"""A role that exists for tests only: a clerk who settles orders, and keeps one value of every kind."""
