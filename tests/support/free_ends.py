"""End points that take no time, so that what a closed form has left is the network."""

FREE_ENDS = {
    "overhead_send": 0.0,
    "overhead_recv": 0.0,
    "injection_bandwidth": 1e300,
    "injection_latency": 0.0,
    "ejection_bandwidth": 1e300,
    "ejection_latency": 0.0,
}
# Likewise, and no message is ever a rendezvous.
FREE = {**FREE_ENDS, "eager_limit": 2**60}


def as_fast_as(bandwidth):
    """Likewise, but as narrow at both ends as links of this bandwidth, in bytes/s."""
    return {**FREE, "injection_bandwidth": bandwidth, "ejection_bandwidth": bandwidth}
