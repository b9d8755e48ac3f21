"""Traces that other tools recorded: liballprof, DUMPI, Paraver, SimGrid's TIT, GOAL schedules."""
