"""Commands for MPI programs: record, header."""
