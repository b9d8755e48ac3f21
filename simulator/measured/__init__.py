"""Measured times of collectives, what is predicted for them, and parameters fitted to them."""
