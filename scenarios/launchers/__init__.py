"""Mapping files: ours, MapLib's, and those of eight launchers."""
