"""Mappers for traffic that is a Cartesian grid, and the same for MPI programs in C and Fortran."""
