"""The dead-letter operator: gives what was given up, or delivered, a next generation; through one routine."""
