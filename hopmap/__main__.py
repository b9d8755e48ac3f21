"""``python -m hopmap`` is the command ``hopmap``."""

from hopmap.scenarios.cli.app import main

main()
