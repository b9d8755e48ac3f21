"""Ranks in an order: as numbered, along curves, by bandwidth reduction, at random."""
