"""A scenario: read, checked, planned, run."""
