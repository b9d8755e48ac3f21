"""Measured collectives: how far predictions are from them, and parameters fitted to them."""
