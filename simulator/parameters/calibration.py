"""Parameters of links and end points from measured ping-pongs, and how good they are.

`closed_form.py` has the model and the fit. Errors are stated of all measurements, those that the
fit leaves out as wild included, and of predictions of every size from the others (cross-validation,
one size left out at a time). With as many unknowns as points neither tests the fit.

Source: Stone, Cross-validatory choice and assessment of statistical predictions, J. Royal
Statistical Society B 36 (1974). Cost: as many fits as sizes, at most `closed_form.FOLDS`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from statistics import median
from typing import Any

import numpy as np

from hopmap.arrays import Bools, Floats

from .closed_form import TERMS, USUAL, WILD, PingPong, predict_left_out, solve
from .keys import ParameterError

WORDS = {
    "overhead": "overheads",
    "ends": "latency of injection and ejection",
    "link": "latency of links",
    "memory": "latency of memory",
}


@dataclass(frozen=True, eq=False)
class Fit:
    """Parameters, and how far they are from what was measured."""

    measured: PingPong
    parameters: Mapping[str, float]  # by key, as `parameters_from` and ``link.*`` take them
    predicted: Floats  # seconds by the model, of each measurement
    weight: Floats  # 1 for what fits, 0 for what is left out as wild
    unknowns: int  # that are fitted
    # largest eager and smallest rendezvous size; None if no break is seen
    break_between: tuple[int, int] | None
    proportioned: tuple[str, ...]  # terms that only their sum is known of

    @property
    def errors(self) -> list[float]:
        """Relative errors of all measurements, those that are left out as wild included."""
        errors: list[float] = self._errors_of(self.predicted).tolist()
        return errors

    @cached_property
    def from_other_sizes(self) -> Floats:
        """Seconds of each measurement, predicted from all other sizes; NaN if these do not tell."""
        if self.unknowns >= len(self.measured.size):
            return np.full(len(self.measured.size), np.nan)
        return predict_left_out(self.measured)

    def _errors_of(self, predicted: Floats) -> Floats:
        errors: Floats = np.abs(predicted / self.measured.time - 1)
        return errors

    @property
    def notes(self) -> list[str]:
        """How good the fit is, and what these measurements cannot tell."""
        notes = [self._note_of_fit(), self._note_of_other_sizes()]
        if self.break_between is None:
            notes.append("eager limit: no break seen; set beyond the largest size")
        else:
            low, high = self.break_between
            notes.append(
                f"eager limit: a break between {low:,} and {high:,} bytes; set to the upper"
            )
        if self.proportioned:
            terms = ", ".join(WORDS[term] for term in self.proportioned)
            notes.append(f"known as a sum only, shared out as the defaults are: {terms}")
        notes.append("no ping-pong tells sending from receiving, injection from ejection: halves")
        if "link.bandwidth" in self.parameters:
            notes.append("nor which of injection, links and ejection is the slowest: all the same")
        return [*notes, "gap, gap_per_byte, control_bytes: left at 0"]

    def _note_of_fit(self) -> str:
        error, kept = self._errors_of(self.predicted), self.weight >= WILD
        note = (
            f"error of the fit, over all {len(error)} measurements: {_show(np.median(error))} % "
            f"(median), {_show(error.max())} % at most"
        )
        if kept.all():
            return note
        return (
            f"{note}; {(~kept).sum()} of them left out of the fit as wild, the others "
            f"{_show(error[kept].max())} % at most"
        )

    def _note_of_other_sizes(self) -> str:
        found = self._checked()
        if found is None:
            few = self.unknowns >= len(self.measured.size)
            why = "as many unknowns as points" if few else "no size follows from the others"
            return f"{why}: the fit cannot be tested"
        note = (
            f"predicted from the other sizes: error {_show(found['median_error'])} % (median), "
            f"{_show(found['max_error'])} % at most ({found['max_error_size']:,} bytes)"
        )
        count = len(self.measured.size)
        silent = count - found["measurements"]
        return f"{note}; of {silent} of {count} measurements they say nothing" if silent else note

    def _checked(self) -> dict[str, Any] | None:
        """Errors of what is predicted from the other sizes; None if they tell no size."""
        error = self._errors_of(self.from_other_sizes)
        known = np.flatnonzero(np.isfinite(error))
        if not known.size:
            return None
        return {
            "measurements": len(known),
            "median_error": float(np.median(error[known])),
            "max_error": float(error[known].max()),
            "max_error_size": int(self.measured.size[known[error[known].argmax()]]),
        }

    def to_dict(self) -> dict[str, Any]:
        """Return what ``calibrate --json`` prints of a ping-pong."""
        data, others = self.measured, self.from_other_sizes
        columns = (data.size, data.hops, data.time, self.predicted, self.weight)
        names = ("size", "hops", "time", "fitted", "weight", "from_other_sizes")
        known = [None if np.isnan(time) else time for time in others.tolist()]
        rows = zip(*(column.tolist() for column in columns), known, strict=True)
        return {
            "parameters": self.parameters,
            "break_between": self.break_between,
            "proportioned": self.proportioned,
            "unknowns": self.unknowns,
            "median_error": median(self.errors),
            "max_error": max(self.errors),
            "wild": int((self.weight < WILD).sum()),
            "from_other_sizes": self._checked(),
            "notes": self.notes,
            "measurements": [dict(zip(names, row, strict=True)) for row in rows],
        }


def _show(error: float) -> str:
    """Write an error in per cent."""
    return f"{100 * error:.3g}" if error >= 1e-6 else "0"


def calibrate(data: PingPong, name: str = "ping-pong") -> Fit:
    """Fit the model's parameters to ping-pongs; errors begin with the name, that of the file."""
    _check(data, name)
    found = solve(data)
    if (found.free >= len(USUAL)).any():
        raise ParameterError(
            f"{name}: too few sizes for a bandwidth: expected at least 3 within a node, if there "
            f"are any, and 3 between nodes"
        )
    seen = np.array([column.any() for column in found.table.T])
    if (found.terms[4:] <= 0)[seen[4:]].any():
        raise ParameterError(f"{name}: times do not grow with the size: expected a bandwidth")
    limit = found.limit
    below = int(data.size.max() if limit is None else data.size[data.size < limit].max())
    return Fit(
        measured=data,
        parameters=_parameters(found.terms, seen, below + 1 if limit is None else limit),
        predicted=found.table @ found.terms,
        weight=found.weight,
        unknowns=found.unknowns,
        break_between=None if limit is None else (below, limit),
        proportioned=tuple(TERMS[k] for k in found.free.tolist()),
    )


def _check(data: PingPong, name: str) -> None:
    bad = np.flatnonzero(~(np.isfinite(data.time) & (data.time > 0)))
    if bad.size:
        raise ParameterError(
            f"{name}: time {data.time[bad[0]]} s of {data.size[bad[0]]} bytes: expected more than 0"
        )
    if (data.size < 0).any() or (data.hops < 0).any():
        raise ParameterError(f"{name}: a negative size or number of hops: expected 0 or more")
    if len(np.unique(data.size)) < 3:
        raise ParameterError(
            f"{name}: {len(np.unique(data.size))} sizes: expected at least 3 different ones"
        )


def _parameters(terms: Floats, seen: Bools, eager_limit: int) -> dict[str, float]:
    """Parameters by key, of the terms that were seen."""
    overhead, ends, link, memory, byte, memory_byte = terms.tolist()
    found: dict[str, float] = {"overhead.send": overhead / 2, "overhead.recv": overhead / 2}
    if seen[4]:
        for end in ("injection", "ejection"):
            found |= {f"{end}.latency": ends / 2, f"{end}.bandwidth": 1 / byte}
        found |= {"link.latency": link, "link.bandwidth": 1 / byte}
    if seen[5]:
        found |= {"memory.latency": memory, "memory.bandwidth": 1 / memory_byte}
    return found | {"eager_limit": eager_limit}
