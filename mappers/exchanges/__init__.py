"""Searches that exchange two ranks."""
