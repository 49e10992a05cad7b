"""Measures the queue of tasks: enqueued one by one and in bulk, drained by one worker and by eight."""
