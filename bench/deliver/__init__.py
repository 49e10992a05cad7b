"""Measures the whole way: from accepted events to completed sagas."""
