"""Collective operations as rounds of messages, chosen as Open MPI does or by name."""
