"""Real processes of every role under a schedule of faults drawn from a seed, and a checker that believes nobody."""
