"""``python -m hopmap.scenarios`` is the command ``hopmap``."""

from .cli import main

main()
