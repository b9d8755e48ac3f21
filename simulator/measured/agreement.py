"""How far measurements agree with each other: what no prediction of an order can much exceed."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from .errors import LARGE, Order, tau_of
from .files import Measured
from .prediction import Prediction


def agreement_of(measured: Measured, prediction: Prediction) -> Order:
    """Compare the orders of algorithms that two files have measured in the same cell.

    A cell is what `Measured.cells` takes for one, the file apart, at 1 MiB and above; algorithms
    are those that both files have and that are simulated, at least three.
    """
    cells: dict[tuple[object, ...], dict[int, dict[str, float]]] = {}
    for k in np.flatnonzero(np.isfinite(prediction.time) & (measured.size >= LARGE)).tolist():
        numbers = (measured.size[k], measured.nodes[k], measured.tasks[k], measured.on_gpu[k])
        cell = cells.setdefault((measured.collective[k], *map(int, numbers)), {})
        times = cell.setdefault(int(measured.file[k]), {})
        times[measured.algorithm[k]] = float(measured.time[k])
    taus = []
    for cell in cells.values():
        for one, two in combinations(cell.values(), 2):
            both = [name for name in one if name in two]
            if len(both) >= 3:
                first, second = (np.array([job[name] for name in both]) for job in (one, two))
                taus.append(tau_of(first, second))
    return Order(len(taus), float(np.median(taus)) if taus else float("nan"), tuple(taus))
