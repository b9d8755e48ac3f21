"""Commands that run MPI programs."""
