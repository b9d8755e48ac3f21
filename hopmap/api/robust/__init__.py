"""Robust choice of a mapping under an uncertain model: regret over models drawn from ranges."""
