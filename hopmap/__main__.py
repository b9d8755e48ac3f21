"""``python -m hopmap`` is the command ``hopmap``."""

from hopmap.cli.start import main

main()
