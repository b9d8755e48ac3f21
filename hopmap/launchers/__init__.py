"""Mapping files: ours, MapLib's, and those of nine launchers."""
