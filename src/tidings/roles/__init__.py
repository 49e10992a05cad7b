"""THE HANDS: one package for each role, with its operations and their statements; roles never import roles."""
