"""The compiled engine of packets, bit for bit the reference."""
