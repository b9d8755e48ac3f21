"""Whole runs from some of their steps, where a program's main loop settles."""
