"""Traffic in the files of other tools, read and written."""
