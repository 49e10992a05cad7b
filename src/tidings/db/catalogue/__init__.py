"""What really stands in a server, laid beside what should."""
