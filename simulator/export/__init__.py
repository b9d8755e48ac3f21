"""Runs and programs for other tools: OTF2, Perfetto, SimGrid, LogGOPSim, Parquet."""
