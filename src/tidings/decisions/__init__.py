"""THE CORE: pure functions, value to value; time and chance are arguments."""
