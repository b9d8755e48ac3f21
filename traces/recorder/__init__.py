"""Recording a program's calls of MPI: a library to preload, and archives from what it leaves."""
