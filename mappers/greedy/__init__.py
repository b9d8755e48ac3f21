"""Published greedy constructions, one rank after the other."""
