"""The explorer: one page on which a replay and its network, timeline and matrix are looked at."""
