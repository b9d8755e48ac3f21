"""Mapping files: our CSV, MapLib's format, and formats of launchers."""
