"""Figures, each a function from results to a matplotlib figure."""
