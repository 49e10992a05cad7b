"""The command line: thin; each command asks the packages below it and shows what they say."""
