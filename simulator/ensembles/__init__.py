"""What several replays with noise say together: medians, intervals, which mappings differ."""
