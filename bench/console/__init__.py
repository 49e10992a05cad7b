"""How long the console's pages take where there is much to show."""
