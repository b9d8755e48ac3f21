"""GOAL schedules: the text that txt2bin reads, and the binary that it writes."""
