"""`python -m lvdet`."""

from lvdet.cli import main

main()
