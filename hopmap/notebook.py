"""What results have in common: they show themselves when printed, and in notebooks."""

from __future__ import annotations

from importlib import import_module


class ShownMixin:
    """A result that prints the table of its command; a notebook adds a picture."""

    def __str__(self) -> str:
        # The command line stands above all that it prints, and is loaded only to print.
        text: str = import_module("hopmap.cli.console").text_of(self)
        return text

    def _repr_html_(self) -> str:
        # Drawing stands above what is drawn, and is loaded only where something is shown.
        html: str = import_module("hopmap.report.notebook").html_of(self)
        return html
