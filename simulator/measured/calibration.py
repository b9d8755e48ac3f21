"""A handful of parameters fitted to measured collectives, see `robust_fit.py`.

Calls that cannot be simulated are left out and counted. Errors are of all other calls, and of what
other algorithms and other sizes predict.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hopmap.arrays import Floats, Ints
from hopmap.progress import Progress, silent
from hopmap.simulator.parameters.keys import ParameterError
from hopmap.simulator.parameters.parameters import key_of
from hopmap.simulator.parameters.settings import (
    Settings,
    Value,
    configure,
    known_keys,
    normalise,
    unknown,
)
from hopmap.topologies import Topology

from .errors import LARGE, Error, Group, by_algorithm, error_of, expect_some, plain
from .files import Measured, MeasuredError
from .names import lookup
from .prediction import MOST as LARGEST_OF_ALL
from .prediction import Prediction, not_simulated, predict
from .robust_fit import Fit, derivatives, fit, loss_of

UNDETERMINED = 100.0  # from the lower to the upper end of an interval
UNEXPLAINED = 0.25  # residual (of logarithms) beyond which a row is not explained
ALL, FROM_1_MIB = "all sizes", "1 MiB and above"
ALGORITHMS, SIZES = "by other algorithms", "by other sizes"
USUAL = (
    "link.bandwidth",
    "overhead.send",
    "overhead.recv",
    "overhead.per_byte",
    "overhead.control",
    "overhead.put_latency",
    "eager_completion",
    "collective.copy_per_byte",
    "collective.reduce_per_byte",
    "collective.put_setup",
    "collective.fresh_memory_per_byte",
)
LIMITS = (8192, 16384, 32768, 65536, 131072)  # eager limits that are tried, where none is set
LEAST = 3  # calls for every parameter
MOST = 240  # calls that are fitted to: of every algorithm as evenly over its sizes as can be
LARGEST = 300_000  # packets of a call that is fitted to, see `predict`; all are predicted
# Where to begin with what is 0 by default.
FIRST: Mapping[str, float] = {"s": 1e-6, "s/byte": 1e-10, "bytes/s": 1e10}


@dataclass(frozen=True, eq=False)
class CollectiveFit:
    """A fit to measured collectives."""

    measured: Measured  # all calls that can be simulated
    predicted: Floats  # seconds of each with the parameters found; NaN of what is too large
    fitted: Measured  # the calls of the fit
    fit: Fit  # its entries are the calls of `fitted`
    settings: Mapping[str, Value]  # all parameters: the inputs, overridden by what was fitted
    omitted: Mapping[str, int]  # calls that are not simulated, by reason
    # parameters that these calls do not tell: left as they were set, and others fitted again
    undetermined: tuple[str, ...] = ()

    @property
    def parameters(self) -> Mapping[str, float]:
        """What was fitted, by key."""
        return self.fit.parameters

    def to_dict(self) -> dict[str, Any]:
        """Return what ``calibrate --json`` prints of collectives."""
        return {
            "parameters": dict(self.parameters),
            "interval": {key: list(pair) for key, pair in self.fit.interval.items()},
            "undetermined": list(self.undetermined),
            "calls": len(self.measured),
            "fitted_calls": len(self.fitted),
            "omitted": [{"why": why, "calls": calls} for why, calls in self.omitted.items()],
            "error": {name: plain(error) for name, error in self.errors().items()},
            "by": [
                {"collective": group.collective, "algorithm": group.algorithm, "sizes": group.sizes}
                | group.error._asdict()
                for group in self.by_algorithm()
            ],
            "unexplained": [
                {"collective": c, "algorithm": a, "buffer_bytes": size, "ratio": ratio}
                for c, a, size, ratio in self.list_unexplained()
            ],
        }

    def errors(self) -> dict[str, Error]:
        """Errors of all calls, of large ones, and as predicted from other calls alone."""
        large, time = self.measured.size >= LARGE, self.measured.time
        errors = {
            ALL: error_of(self.predicted, time),
            FROM_1_MIB: error_of(self.predicted[large], time[large]),
        }
        others = {ALGORITHMS: self.fit.without_algorithm, SIZES: self.fit.without_size}
        large, time = self.fitted.size >= LARGE, self.fitted.time
        errors |= {name: error_of(each, time) for name, each in others.items()}
        return errors | {
            f"{FROM_1_MIB}, {name}": error_of(each[large], time[large])
            for name, each in others.items()
        }

    def stated_error(self) -> tuple[float | None, str]:
        """Return the median error of predictions from other calls, and a sentence about it.

        It is of 1 MiB and above, if there are such calls, and the larger one by other algorithms
        and by other sizes. None if there is no other.
        """
        errors = self.errors()
        sizes, prefix = (FROM_1_MIB, f"{FROM_1_MIB}, ") if errors[FROM_1_MIB].rows else (ALL, "")
        others = {name: errors[prefix + name] for name in (ALGORITHMS, SIZES)}
        medians = {name: error.median for name, error in others.items() if error.rows}
        said = ", ".join(f"{name} {100 * median:.1f} %" for name, median in medians.items())
        fitted = errors[sizes]
        return max(medians.values(), default=None), (
            f"{fitted.rows} calls, {sizes}: median error {100 * fitted.median:.1f} %; "
            f"{said or 'no other algorithm or size: the fit cannot be tested'}"
        )

    def by_algorithm(self) -> list[Group]:
        """Errors by algorithm and class of sizes."""
        prediction = Prediction(self.predicted, ("",) * len(self.measured))
        return by_algorithm(self.measured, prediction)

    def list_unexplained(self) -> list[tuple[str, str, int, float]]:
        """Return calls that are farther off than `UNEXPLAINED`: names, bytes, ratio to measured."""
        ratio = self.predicted / self.measured.time
        far = np.flatnonzero(np.abs(np.log(ratio)) > UNEXPLAINED)
        table = self.measured
        return [
            (table.collective[k], table.algorithm[k], int(table.size[k]), float(ratio[k]))
            for k in far[np.argsort(-np.abs(np.log(ratio[far])), kind="stable")].tolist()
        ]


def fit_collectives(
    measured: Measured,
    networks: Sequence[Topology],
    settings: Mapping[str, Value],
    keys: Sequence[str] = (),
    *,
    ranks: int = 0,
    progress: Progress = silent,
) -> CollectiveFit:
    """Fit parameters to those calls whose algorithm has a public definition.

    Each file has its network. `settings` are the parameters that differ from their defaults, and
    where to begin; `keys` is what to fit, when left out of `USUAL` what these calls depend on.
    Calls of more than `ranks` ranks are left out; 0 for any number.
    """
    usual, keys = not keys, tuple(keys or USUAL)
    why = [
        not_simulated(measured, k, lookup(c, a), networks[measured.file[k]], ranks)
        for k, (c, a) in enumerate(zip(measured.collective, measured.algorithm, strict=True))
    ]
    expect_some(measured, why)
    table = measured.part(np.array([not reason for reason in why]))
    start = {key: _start(key, settings, networks[0]) for key in keys}
    _expect_enough(measured, len(table), "by algorithms that are known", keys)
    runs = 0

    def simulate(values: Mapping[str, float], limit: int) -> Prediction:
        nonlocal runs
        runs += 1
        point: Settings = tuple({**settings, **values}.items())
        made = [configure(network, point) for network in networks]

        def shown(done: int, total: int | None, _text: str = "", /) -> object:
            return progress(done, total, f"run {runs} of all calls")

        return predict(calls, *zip(*made, strict=True), limit=limit, progress=shown)

    def times(values: Mapping[str, float]) -> Floats:
        return simulate(values, LARGEST).time

    calls = table.part(_sample(table))
    there = np.isfinite(times(start))
    _expect_enough(measured, int(there.sum()), "that can be simulated", keys)
    calls = fitted = calls.part(there)
    at_start = derivatives(start, times)
    if usual:  # leave out what these calls do not tell
        known = (at_start != 0).any(axis=0)
        start = {key: start[key] for key, tells in zip(keys, known.tolist(), strict=True) if tells}
        at_start = at_start[:, known]
    algorithms = [f"{c} {a}" for c, a in zip(fitted.collective, fitted.algorithm, strict=True)]
    groups = (
        np.unique(algorithms, return_inverse=True)[1],
        np.unique(fitted.size, return_inverse=True)[1],
    )
    fixed = dict(normalise(tuple(settings.items())))
    if "eager_limit" not in fixed:
        nearly = fit(start, times, fitted.time, *groups, slopes=at_start, roughly=True)
        fixed["eager_limit"] = min(
            LIMITS,
            key=lambda limit: loss_of(
                times({**nearly.parameters, "eager_limit": limit}), fitted.time
            ),
        )
        settings, start, at_start = fixed, dict(nearly.parameters), nearly.slopes
    found = fit(start, times, fitted.time, *groups, slopes=at_start)
    undetermined: list[str] = []
    while len(found.parameters) > 1 and (widest := _widest(found)):
        undetermined.append(widest)
        kept = [key != widest for key in found.parameters]
        start = {key: value for key, value in found.parameters.items() if key != widest}
        found = fit(start, times, fitted.time, *groups, slopes=found.slopes[:, kept])
    calls = table
    predicted = simulate(found.parameters, LARGEST_OF_ALL)
    return CollectiveFit(
        measured=table,
        predicted=predicted.time,
        fitted=fitted,
        fit=found,
        settings={**fixed, **found.parameters},
        omitted=Counter(filter(None, (*why, *predicted.why))),
        undetermined=tuple(undetermined),
    )


def _expect_enough(measured: Measured, calls: int, which: str, keys: Sequence[str]) -> None:
    if calls < LEAST * len(keys):
        raise MeasuredError(
            f"{', '.join(measured.files)}: {calls} calls {which}: "
            f"expected at least {LEAST * len(keys)} for {len(keys)} parameters"
        )


def _widest(found: Fit) -> str:
    """Return the parameter of the widest interval, if that is wider than `UNDETERMINED`."""
    width = {key: high / low for key, (low, high) in found.interval.items()}
    widest = max(width, key=width.__getitem__)
    return widest if width[widest] > UNDETERMINED else ""


def _sample(table: Measured) -> Ints:
    """Choose calls to fit to: every so many of each algorithm."""
    names = np.array([f"{c} {a}" for c, a in zip(table.collective, table.algorithm, strict=True)])
    rows = np.lexsort((table.size, names, table.file))
    return np.sort(rows[:: -(-len(rows) // MOST)])


def _start(key: str, settings: Mapping[str, Value], network: Topology) -> float:
    """Return the value to begin with: what is set, else the default, else a usual size."""
    network, parameters = configure(network, tuple(settings.items()))
    if key.startswith("link."):
        if key not in (keys := known_keys([network])):
            raise ParameterError(f"--fit: {unknown(key, keys)}")
        *_, kind, quantity = key.split(".")
        of = next((k for k in network.kinds if k.name == kind), network.kinds[0])
        value, unit = getattr(of, quantity), {"bandwidth": "bytes/s", "latency": "s"}[quantity]
    else:
        entry = key_of(key)
        if entry.unit not in FIRST:
            raise ParameterError(f"--fit {key}: expected one in {', '.join(FIRST)}")
        value, unit = getattr(parameters, entry.field), entry.unit
    return float(value) or FIRST[unit]
