"""The columns of the result tables."""

from __future__ import annotations

import pyarrow as pa

from hopmap.errors import HopmapError

METRICS = (
    *(f"ienpc_{part}" for part in ("total", "avg", "min", "max")),
    "ienlc_total",
    "ianlc_total",
    "ieplc_total",
    "dilation_avg",
    "dilation_max",
    "congestion_max",
    "ianlc_max",
    "off_node_total",
    "off_node_max",
)
_INT, _REAL = pa.int64(), pa.float64()


def _metric_fields() -> list[tuple[str, pa.DataType]]:
    names = [f"{m}_{metric}" for m in ("messages", "bytes") for metric in METRICS]
    # Null where nothing like it was published: on networks without coordinates, on huge ones.
    names += [f"maplib_{m}_{metric}" for m in ("messages", "bytes") for metric in METRICS[:4]]
    return [(name, _REAL if name.endswith("_avg") else _INT) for name in names]


_RUNS = pa.schema(
    [
        ("run_id", pa.string()),
        ("trace", pa.string()),
        ("topology", pa.string()),
        ("variant", pa.string()),  # a label of the plan; null until runs are gathered
        ("mapper", pa.string()),
        ("seed", _INT),
        ("parameters", pa.string()),  # those that the scenario sets, a JSON object in SI units
        ("ranks", _INT),
        ("nodes", _INT),
        ("mapping_seconds", _REAL),
        ("node_of", pa.list_(pa.int32())),
        ("hop_messages", _INT),
        ("hop_bytes", _INT),
        *_metric_fields(),
        ("link_seconds_total", _REAL),  # bytes / bandwidth, over all links
        ("link_seconds_max", _REAL),  # and of the link that is longest at it
        ("engine", pa.string()),
        ("makespan", _REAL),
        ("makespan_median", _REAL),  # of repeats with noise, and what encloses it with 95 %
        ("makespan_low", _REAL),
        ("makespan_high", _REAL),
        ("makespans", pa.list_(_REAL)),  # one for each seed of noise, the same seeds in all runs
        ("models", _INT),  # of the network, if makespans are of these and not of seeds of noise
        ("makespan_ideal_network", _REAL),  # no mapping makes it shorter
        ("slowdown", _REAL),  # makespan with other jobs / without; null where there are none
        ("compute", _REAL),  # means over ranks, seconds
        ("communicate", _REAL),
        ("wait", _REAL),
        ("energy", _REAL),  # joules, null where no parameter of it is set
        ("energy_transfer", _REAL),  # what of it the bytes on links cost
        ("replayed_hop_bytes", _INT),  # as hop_bytes and bytes_congestion_max, but of all that was
        ("replayed_congestion_max", _INT),  # replayed, so with what collectives send
        ("replay_seconds", _REAL),
        ("replay_error", _REAL),  # bound, of the makespan; null where all steps were replayed
        ("events", _INT),
        ("omitted", pa.string()),  # of the trace by the replay: a JSON list of `Omission`
        ("error", pa.string()),
    ]
)
TIMES = ("mapping_seconds", "replay_seconds")
"""Columns of "runs" that differ from machine to machine; all else is the same for the same run."""

TABLES = {
    "runs": _RUNS,
    "ranks": pa.schema(
        [
            ("run_id", pa.string()),
            ("rank", _INT),
            ("node", _INT),
            ("finish", _REAL),  # seconds, null where nothing was replayed, as the next three
            ("compute", _REAL),
            ("communicate", _REAL),
            ("wait", _REAL),
        ]
    ),
    "links": pa.schema(
        [
            ("run_id", pa.string()),
            ("link", _INT),
            ("from", _INT),
            ("to", _INT),
            ("kind", pa.string()),
            ("messages", _INT),
            ("bytes", _INT),
            ("replayed_bytes", _INT),  # as in "runs"; null where nothing was replayed, as busy
            ("busy", _REAL),  # seconds
        ]
    ),
    "messages": pa.schema(
        [
            ("run_id", pa.string()),
            ("source", _INT),  # ranks
            ("target", _INT),
            ("bytes", _INT),
            ("sent", _REAL),  # seconds
            ("delivered", _REAL),
        ]
    ),
}
"""Columns of the tables."""


class StoreError(HopmapError, ValueError):
    """A folder does not hold results; the message names it."""
