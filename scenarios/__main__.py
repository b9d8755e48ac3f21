"""``python -m hopmap.scenarios`` is the command ``hopmap``."""

from hopmap.scenarios.cli.app import main

main()
