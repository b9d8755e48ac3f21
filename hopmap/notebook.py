"""What results have in common: they show themselves in notebooks."""

from __future__ import annotations

from importlib import import_module


class HtmlReprMixin:
    """A result that a notebook shows as a table and a picture."""

    def _repr_html_(self) -> str:
        # Drawing stands above what is drawn, and is loaded only where something is shown.
        html: str = import_module("hopmap.report.notebook").html_of(self)
        return html
