"""Recursive bisection and multilevel mapping with partitions of our own."""
