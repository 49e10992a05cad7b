"""The router: turns events into sagas and tasks, once each, in the order in which they become visible."""
