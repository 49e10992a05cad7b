"""The shop: a model, two views, and the events that they publish."""
