"""What a replay assumes: speeds, overheads, energy; their units, and how to fit them."""
