"""The same tasks through other queues on the same PostgreSQL, in one run beside ours."""
