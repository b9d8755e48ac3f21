"""Commands on measured times: calibrate, validate."""
