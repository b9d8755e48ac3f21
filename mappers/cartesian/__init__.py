"""Mappers for traffic that is a Cartesian grid, and the C header that has them."""
