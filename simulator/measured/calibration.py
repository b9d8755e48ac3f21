"""Which parameters are fitted to measured collectives, and what they are fitted to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any

import numpy as np

from hopmap.arrays import Bools, Floats, Ints
from hopmap.progress import Progress, silent
from hopmap.simulator.parameters.keys import ParameterError
from hopmap.simulator.parameters.parameters import key_of
from hopmap.simulator.parameters.settings import Settings, Value, configure, known_keys, normalised
from hopmap.topologies import Topology

from .errors import LARGE, Error, Group, by_algorithm, error_of
from .files import Measured, MeasuredError
from .fitting import UNEXPLAINED, Fit, Model, fit, loss_of
from .names import known
from .prediction import Prediction, not_simulated, predict

USUAL = (
    "link.bandwidth",
    "overhead.send",
    "overhead.recv",
    "overhead.per_byte",
    "overhead.control",
    "overhead.put_latency",
    "gap",
    "collective.copy_per_byte",
    "collective.reduce_per_byte",
    "collective.before_puts",
    "collective.new_per_byte",
)
LIMITS = (8192, 16384, 32768, 65536, 131072)  # eager limits that are tried, where none is set
LEAST = 3  # calls for every parameter
MOST = 240  # calls that are fitted to: of every algorithm as evenly over its sizes as can be
# Where to begin with what is 0 by default.
FIRST: Mapping[str, float] = {"s": 1e-6, "s/byte": 1e-10, "bytes/s": 1e10}


@dataclass(frozen=True, eq=False)
class CollectiveFit:
    """A fit to measured collectives."""

    measured: Measured  # all calls that can be simulated
    predicted: Floats  # seconds of each with the parameters found; NaN of what is too large
    fitted: Measured  # those that were fitted to
    fit: Fit  # its entries are those of `fitted`
    settings: Mapping[str, Value]  # all parameters: what was given, and over it what was fitted

    @property
    def parameters(self) -> Mapping[str, float]:
        """What was fitted, by key."""
        return self.fit.parameters

    def to_dict(self) -> dict[str, Any]:
        """Return what ``calibrate --json`` prints of collectives."""
        return {
            "parameters": dict(self.parameters),
            "interval": {key: list(pair) for key, pair in self.fit.interval.items()},
            "calls": len(self.measured),
            "error": {name: error._asdict() for name, error in self.errors().items()},
            "by": [
                {"collective": group.collective, "algorithm": group.algorithm, "sizes": group.sizes}
                | group.error._asdict()
                for group in self.by_algorithm()
            ],
            "unexplained": [
                {"collective": c, "algorithm": a, "buffer_bytes": size, "ratio": ratio}
                for c, a, size, ratio in self.unexplained()
            ],
        }

    def errors(self) -> dict[str, Error]:
        """Errors of all calls, of large ones, and as predicted from other calls alone."""
        large, time = self.measured.size >= LARGE, self.measured.time
        return {
            "all sizes": error_of(self.predicted, time),
            "1 MiB and above": error_of(self.predicted[large], time[large]),
            "by other algorithms": error_of(self.fit.left_out, self.fitted.time),
            "by other sizes": error_of(self.fit.left_out_size, self.fitted.time),
        }

    def by_algorithm(self) -> list[Group]:
        """Errors by algorithm and class of sizes."""
        return by_algorithm(self.measured, self._prediction())

    def unexplained(self) -> list[tuple[str, str, int, float]]:
        """Return calls that are farther off than `UNEXPLAINED`: names, bytes, ratio to measured."""
        ratio = self.predicted / self.measured.time
        far = np.flatnonzero(np.abs(np.log(ratio)) > UNEXPLAINED)
        table = self.measured
        return [
            (table.collective[k], table.algorithm[k], int(table.size[k]), float(ratio[k]))
            for k in far[np.argsort(-np.abs(np.log(ratio[far])), kind="stable")].tolist()
        ]

    def _prediction(self) -> Prediction:
        return Prediction(self.predicted, ("",) * len(self.measured))


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

    Parameters
    ----------
    networks : sequence of Topology
        Of each file.
    settings : mapping of str to str or float
        Parameters that differ from their defaults, and where to begin.
    keys : sequence of str
        What to fit; when left out, of `USUAL` what these calls depend on.
    ranks : int
        Calls of more ranks are left out; 0 for any number.
    """
    usual, keys = not keys, tuple(keys or USUAL)
    chosen = np.array(
        [
            not not_simulated(measured, k, known(c, a), networks[measured.file[k]], ranks)
            for k, (c, a) in enumerate(zip(measured.collective, measured.algorithm, strict=True))
        ]
    )
    table = measured.part(chosen)
    _expect_enough(measured, len(table), "by algorithms that are known", keys)
    start = np.array([_start(key, settings, networks[0]) for key in keys])
    runs = 0

    def times(values: Mapping[str, float]) -> Floats:
        nonlocal runs
        runs += 1
        given: Settings = tuple({**settings, **values}.items())
        made = [configure(network, given) for network in networks]

        def shown(done: int, total: int | None, _text: str = "", /) -> object:
            return progress(done, total, f"run {runs} of all calls")

        return predict(calls, *zip(*made, strict=True), progress=shown).time

    calls = table
    first = times(dict(zip(keys, start.tolist(), strict=True)))
    there = np.isfinite(first)
    _expect_enough(measured, int(there.sum()), "that can be simulated", keys)
    sample = _sample(table, there)
    calls = fitted = table.part(sample)
    if usual:  # leave out what these calls do not tell
        begin = dict(zip(keys, start.tolist(), strict=True))
        told = [bool((times({**begin, k: 2 * begin[k]}) != first[sample]).any()) for k in keys]
        keys, start = tuple(compress(keys, told)), start[told]
    algorithms = [f"{c} {a}" for c, a in zip(fitted.collective, fitted.algorithm, strict=True)]
    groups = (
        np.unique(algorithms, return_inverse=True)[1],
        np.unique(fitted.size, return_inverse=True)[1],
    )
    given = dict(normalised(tuple(settings.items())))
    if "eager_limit" not in given:
        nearly = fit(Model(keys, start, times), fitted.time, *groups, roughly=True).parameters
        given["eager_limit"] = min(
            LIMITS, key=lambda limit: loss_of(times({**nearly, "eager_limit": limit}), fitted.time)
        )
        settings, start = given, np.array(list(nearly.values()))
    found = fit(Model(keys, start, times), fitted.time, *groups)
    calls = table
    predicted = times(found.parameters)
    return CollectiveFit(table, predicted, fitted, found, {**given, **found.parameters})


def _expect_enough(measured: Measured, calls: int, which: str, keys: Sequence[str]) -> None:
    if calls < LEAST * len(keys):
        raise MeasuredError(
            f"{', '.join(measured.files)}: {calls} calls {which}: "
            f"expected at least {LEAST * len(keys)} for {len(keys)} parameters"
        )


def _sample(table: Measured, there: Bools) -> Ints:
    """Choose calls to fit to among those that can be simulated: every so many of each algorithm."""
    names = np.array([f"{c} {a}" for c, a in zip(table.collective, table.algorithm, strict=True)])
    rows = np.flatnonzero(there)
    rows = rows[np.lexsort((table.size[rows], names[rows], table.file[rows]))]
    return np.sort(rows[:: -(-len(rows) // MOST)])


def _start(key: str, settings: Mapping[str, Value], network: Topology) -> float:
    """Return the value to begin with: what is set, else the default, else a usual size."""
    network, parameters = configure(network, tuple(settings.items()))
    if key.startswith("link."):
        if key not in (keys := known_keys([network])):
            raise ParameterError(f"--fit {key}: expected one of {', '.join(keys)}")
        *_, kind, quantity = key.split(".")
        of = next((k for k in network.kinds if k.name == kind), network.kinds[0])
        value, unit = getattr(of, quantity), {"bandwidth": "bytes/s", "latency": "s"}[quantity]
    else:
        entry = key_of(key)
        if entry.unit not in FIRST:
            raise ParameterError(f"--fit {key}: expected one in {', '.join(FIRST)}")
        value, unit = getattr(parameters, entry.field), entry.unit
    return float(value) or FIRST[unit]
