"""Proven optima of small cases."""
