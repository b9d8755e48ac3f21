"""Traces as frames of other analysis tools: Pipit and Hatchet."""
