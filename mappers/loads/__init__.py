"""Searches that lower the load of the busiest link."""
