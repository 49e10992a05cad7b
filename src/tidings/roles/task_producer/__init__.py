"""The task producer: puts tasks into the queue, once for each business key."""
