"""`python -m tidings` is the command line."""

from tidings.cli.main import main

main()
