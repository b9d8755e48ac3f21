"""Bine trees, and collectives along them."""
