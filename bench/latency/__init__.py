"""Measures how soon an idle system reacts: from a producer's commit to the request at the endpoint."""
