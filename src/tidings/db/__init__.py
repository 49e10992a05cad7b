"""THE ENGINES: connections, transactions, statement files, migrations, grants. Knows nothing of what events mean."""
