"""Tables of measured collectives, made of rows that have the columns of a file."""

from __future__ import annotations

import numpy as np

from hopmap.simulator.measured.files import Measured


def measured_of(rows):
    def column(name, *default):
        return [row.get(name, *default) for row in rows]

    return Measured(
        collective=tuple(column("collective")),
        algorithm=tuple(column("algorithm")),
        size=np.array(column("buffer_bytes"), dtype=np.int64),
        time=np.array(column("median_ns"), dtype=np.float64) * 1e-9,
        nodes=np.array(column("nodes", 0), dtype=np.int64),
        tasks=np.array(column("tasks_per_node", 1), dtype=np.int64),
        on_gpu=np.array([word == "yes" for word in column("gpu_aware", "no")], dtype=np.bool_),
        file=np.zeros(len(rows), dtype=np.int64),
        files=("measured",),
    )
