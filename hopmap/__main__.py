"""``python -m hopmap`` is the command ``hopmap``."""

from hopmap.cli.app import main

main()
