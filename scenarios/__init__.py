"""Which questions are asked: sweeps, their results and reports, and the command line."""
