"""Several jobs on one machine: where each sits, when it starts, what it has of the network."""
