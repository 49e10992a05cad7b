"""Measures how soon a system reacts: from a producer's commit to the request at the endpoint."""
