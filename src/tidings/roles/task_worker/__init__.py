"""The task worker: claims tasks by their version, runs handlers, stores what came of them under the same fence."""
