"""The task archiver: moves finished tasks to the history, each in one table or the other at every moment."""
