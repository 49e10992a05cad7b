"""Retention: removes whole finished stories, where somebody asked for it."""
