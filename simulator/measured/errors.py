"""How far predictions are from what was measured: errors, choices of algorithms, their order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from hopmap.arrays import Floats, Ints

from .files import Measured, MeasuredError
from .prediction import WHOLE, Prediction

LARGE = 1 << 20  # bytes from which on a size is large
CLASSES: Mapping[str, tuple[int, float]] = {
    "< 4 KiB": (0, 4 << 10),
    "4 to 256 KiB": (4 << 10, 256 << 10),
    "256 KiB to 1 MiB": (256 << 10, LARGE),
    ">= 1 MiB": (LARGE, np.inf),
}
BLOCKS: Mapping[str, tuple[int, float]] = {
    "< 2 KiB": (0, 2 << 10),
    "2 to 32 KiB": (2 << 10, 32 << 10),
    ">= 32 KiB": (32 << 10, np.inf),
}
"""Bytes from one rank to another: the buffer (of `WHOLE`), or the buffer divided by the ranks."""
CLOSE = 0.05  # a choice that costs no more than this is as good as the best


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
                here, there = (np.array([job[name] for name in both]) for job in (one, two))
                taus.append(tau_of(here, there))
    return _sum_up(taus, [0] * len(taus))


class Error(NamedTuple):
    """Sizes of relative errors, |predicted / measured - 1|; NaN of nothing."""

    rows: int
    # median, p90: median and 90th percentile
    median: float
    p90: float
    # within_5, within_10, within_25: share that is at most 5, 10 and 25 %
    within_5: float
    within_10: float
    within_25: float
    bias: float  # median of the signed errors: below 0 where predictions are too short


class Choice(NamedTuple):
    """Whether the fastest known algorithm of a cell is found."""

    cells: int  # of at least two known algorithms; what differs in algorithm alone is a cell
    right: int  # cells whose fastest algorithm by simulation is the fastest by measurement
    # cells in which what simulation takes for the fastest is so, or took at most 5 % longer
    within_5: int


class Order(NamedTuple):
    """How the order of the algorithms of a cell is found."""

    cells: int  # of at least three known algorithms at 1 MiB and above, not all with the same time
    tau: float  # median of Kendall's tau (b) over these cells; NaN if there are none
    taus: tuple[float, ...]
    at: tuple[int, ...]  # an entry of each cell
    tied: int  # further cells, in which all measured or all predicted times are equal


class Group(NamedTuple):
    """Errors of one algorithm in one class of sizes."""

    collective: str
    algorithm: str
    sizes: str
    error: Error


class OfOperation(NamedTuple):
    """Errors of one collective on so many ranks, of blocks of one class."""

    collective: str
    ranks: int
    blocks: str
    error: Error


def error_of(predicted: Floats, measured: Floats) -> Error:
    """Sum up the errors of predictions; those that are NaN are left out."""
    there = np.isfinite(predicted)
    signed = predicted[there] / measured[there] - 1
    size = np.abs(signed) if signed.size else np.full(1, np.nan)
    within_5, within_10, within_25 = (
        float((size <= bound).mean()) if signed.size else float("nan")
        for bound in (0.05, 0.10, 0.25)
    )
    return Error(
        rows=len(signed),
        median=float(np.median(size)),
        p90=float(np.quantile(size, 0.9)),
        within_5=within_5,
        within_10=within_10,
        within_25=within_25,
        bias=float(np.median(signed)) if signed.size else float("nan"),
    )


def by_algorithm(measured: Measured, prediction: Prediction) -> list[Group]:
    """Errors by collective, algorithm and class of sizes, of what was simulated."""
    there = np.isfinite(prediction.time)
    names = sorted({(measured.collective[k], measured.algorithm[k]) for k in np.flatnonzero(there)})
    number = {name: k for k, name in enumerate(names)}
    pairs = zip(measured.collective, measured.algorithm, strict=True)
    of = np.array([number.get(pair, -1) for pair in pairs])
    groups = []
    for name, k in number.items():
        for sizes, (least, most) in CLASSES.items():
            rows = there & (of == k) & (measured.size >= least) & (measured.size < most)
            if rows.any():
                error = error_of(prediction.time[rows], measured.time[rows])
                groups.append(Group(*name, sizes, error))
    return groups


def by_operation(measured: Measured, prediction: Prediction) -> list[OfOperation]:
    """Errors by collective, ranks and class of blocks, of what was simulated."""
    ranks = np.broadcast_to(prediction.ranks, len(measured))
    whole = np.isin(measured.collective, WHOLE)
    block = np.where(whole, measured.size, measured.size // np.maximum(ranks, 1))
    names, of = np.unique(measured.collective, return_inverse=True)
    found = []
    for name, number in np.unique(np.stack((of, ranks), axis=1), axis=0).tolist():
        for blocks, (least, most) in BLOCKS.items():
            rows = (of == name) & (ranks == number) & (block >= least) & (block < most)
            error = error_of(prediction.time[rows], measured.time[rows])
            if error.rows:
                found.append(OfOperation(str(names[name]), number, blocks, error))
    return found


def choice_of(measured: Measured, prediction: Prediction) -> Choice:
    """See whether the fastest algorithm is found, cell by cell."""
    cells = right = close = 0
    for rows in _cells(measured, prediction, 2):
        time = measured.time[rows]
        taken = time[np.argmin(prediction.time[rows])]
        cells += 1
        right += bool(taken == time.min())
        close += bool(taken <= (1 + CLOSE) * time.min())
    return Choice(cells, right, close)


def order_of(measured: Measured, prediction: Prediction) -> Order:
    """See how well the order of algorithms is found, cell by cell, for large sizes."""
    cells = [c for c in _cells(measured, prediction, 3) if measured.size[c[0]] >= LARGE]
    taus = [tau_of(prediction.time[rows], measured.time[rows]) for rows in cells]
    return _sum_up(taus, [int(rows[0]) for rows in cells])


def _sum_up(taus: Sequence[float], at: Sequence[int]) -> Order:
    """Sum up Kendall's tau of cells; NaN where one of the orders has only ties."""
    there = [(tau, k) for tau, k in zip(taus, at, strict=True) if not np.isnan(tau)]
    values, places = tuple(tau for tau, _ in there), tuple(k for _, k in there)
    middle = float(np.median(values)) if values else float("nan")
    return Order(len(values), middle, values, places, len(taus) - len(values))


def describe_order(order: Order) -> str:
    """Write Kendall's tau for people, or why there is none."""
    if order.cells:
        return f"Kendall's tau {order.tau:.2f} (median of {order.cells:,} cells)"
    if order.tied:
        return f"no Kendall's tau: in each of {order.tied:,} cells all times are equal"
    return "no Kendall's tau: no cell has three simulated algorithms"


def tau_of(one: Floats, two: Floats) -> float:
    """Return Kendall's tau (b) of two orders; NaN where one of them has only ties."""
    from scipy.stats import kendalltau

    return float(kendalltau(one, two).statistic)


def _cells(measured: Measured, prediction: Prediction, least: int) -> list[Ints]:
    """Return simulated entries of every cell that has so many different algorithms."""
    there = np.flatnonzero(np.isfinite(prediction.time))
    cell = measured.cells()[there]
    groups = (there[cell == number] for number in np.unique(cell))
    return [g for g in groups if len({measured.algorithm[k] for k in g.tolist()}) >= least]


def facts(measured: Measured, prediction: Prediction) -> dict[str, Any]:
    """Return all of this as plain values, for JSON; NaN is None."""
    large = measured.size >= LARGE
    order = order_of(measured, prediction)
    return {
        "rows": len(measured),
        "known": int(np.isfinite(prediction.time).sum()),
        "error": {
            "all": plain(error_of(prediction.time, measured.time)),
            "large": plain(error_of(prediction.time[large], measured.time[large])),
        },
        "choice": choice_of(measured, prediction)._asdict(),
        "order": {
            "cells": order.cells,
            "tau": _finite(order.tau),
            "why": None if order.cells else describe_order(order),
            "each": [
                {
                    "file": measured.files[measured.file[k]],
                    "collective": measured.collective[k],
                    "buffer_bytes": int(measured.size[k]),
                    "nodes": int(measured.nodes[k]),
                    "tasks_per_node": int(measured.tasks[k]),
                    "tau": tau,
                }
                for k, tau in zip(order.at, order.taus, strict=True)
            ],
        },
        "by_operation": [
            {"collective": g.collective, "ranks": g.ranks, "blocks": g.blocks} | plain(g.error)
            for g in by_operation(measured, prediction)
        ],
        "by": [
            {"collective": g.collective, "algorithm": g.algorithm, "sizes": g.sizes}
            | plain(g.error)
            for g in by_algorithm(measured, prediction)
        ],
        "unknown": [
            {"collective": c, "algorithm": a, "why": why, "rows": rows}
            for (c, a, why), rows in count_unknown(measured, prediction).items()
        ],
    }


def count_unknown(measured: Measured, prediction: Prediction) -> dict[tuple[str, str, str], int]:
    """Count what was not simulated, by collective, algorithm and reason."""
    counts: dict[tuple[str, str, str], int] = {}
    for row in zip(measured.collective, measured.algorithm, prediction.why, strict=True):
        if row[2]:
            counts[row] = counts.get(row, 0) + 1
    return dict(sorted(counts.items()))


def expect_some(measured: Measured, why: Sequence[str]) -> None:
    """Raise `MeasuredError` where every call has a reason not to be simulated."""
    if not all(why):
        return
    reason = why[0]
    hint = ""
    if reason.startswith("unknown"):
        hint = ": expected names of hopmap list algorithms or hopmap list measured-names"
    raise MeasuredError(
        f"{', '.join(measured.files)}: none of {len(measured)} calls can be simulated "
        f"({measured.collective[0]} {measured.algorithm[0]}: {reason}){hint}"
    )


def plain(error: Error) -> dict[str, Any]:
    """Return an error as plain values; NaN is None."""
    return {key: _finite(value) for key, value in error._asdict().items()}


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None
