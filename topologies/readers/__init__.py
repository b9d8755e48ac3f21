"""Networks from files of Slurm, SimGrid, hwloc and GraphML."""
