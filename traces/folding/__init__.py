"""Loops in recorded traces: what repeats is found, and listed once."""
