"""What scripts and the command line ask: workloads, machines, mappings, replays, advice."""
