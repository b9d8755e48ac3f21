"""Predictions beside measured collectives: how good they are, and parameters fitted to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from hopmap.errors import HopmapError
from hopmap.progress import Progress, silent
from hopmap.scenarios.given import GivenSettings, GivenTopology, configured
from hopmap.scenarios.report.validation import write_validation
from hopmap.simulator.measured.calibration import CollectiveFit, fit_collectives
from hopmap.simulator.measured.errors import facts
from hopmap.simulator.measured.files import Measured, read_measured
from hopmap.simulator.measured.prediction import MOST, Prediction, predict
from hopmap.topologies import Topology, topology_from_spec
from hopmap.topologies.readers.hosts import nodes_of, read_hosts

GivenMeasured: TypeAlias = str | Path | Measured | Sequence[str | Path]
GivenNetworks: TypeAlias = GivenTopology | Sequence[GivenTopology]
GivenAllocations: TypeAlias = str | Path | Sequence[str | Path] | None


class ValidationError(HopmapError, ValueError):
    """Files, topologies and allocations do not fit each other."""


@dataclass(frozen=True, eq=False)
class Validation:
    """Measured calls, what is predicted for them, and how far that is off.

    Attributes
    ----------
    measured : Measured
    prediction : Prediction
    topologies : tuple of str
        Of each file.
    """

    measured: Measured
    prediction: Prediction
    topologies: tuple[str, ...]

    @property
    def facts(self) -> dict[str, Any]:
        """All figures as plain values, see `simulator.measured.errors`."""
        return facts(self.measured, self.prediction)

    def write(self, folder: str | Path) -> tuple[Path, Path]:
        """Write ``calls.parquet`` and ``validation.html`` into a folder; return their paths.

        Raises
        ------
        OSError
            The folder cannot be written.
        """
        return write_validation(folder, self.measured, self.prediction, self.topologies)


def validate(
    measured: GivenMeasured,
    topology: GivenNetworks,
    *,
    settings: GivenSettings = None,
    alloc: GivenAllocations = None,
    limit: int = MOST,
    progress: Progress = silent,
) -> Validation:
    """Hold predictions against measured collectives.

    Parameters
    ----------
    measured : path, Measured or sequence of path
        CSV with the columns ``collective, algorithm, buffer_bytes, median_ns``, and ``nodes,
        tasks_per_node`` where not all nodes have one rank.
    topology : str or Topology, or sequence of them
        Of all files, or of each.
    settings : mapping of str to str or float, optional
        Parameters, as `calibrate` finds them.
    alloc : path or sequence of path, optional
        CSV of the hosts of the ranks, of all files or of each; else ranks sit on the nodes in their
        order.
    limit : int
        Packets of a call that is simulated at most; larger ones are listed.

    Raises
    ------
    MeasuredError, ValidationError, TopologyError, SettingError, ParameterError
        A file that cannot be read so, or calls on more nodes than there are.
    """
    table = _read(measured)
    networks, parameters = zip(
        *(configured(network, settings) for network in _networks(table, topology, alloc)),
        strict=True,
    )
    prediction = predict(table, networks, parameters, limit=limit, progress=progress)
    return Validation(table, prediction, tuple(network.spec for network in networks))


def calibrate_collectives(
    measured: GivenMeasured,
    topology: GivenNetworks,
    *,
    keys: Sequence[str] = (),
    settings: GivenSettings = None,
    alloc: GivenAllocations = None,
    progress: Progress = silent,
) -> CollectiveFit:
    """Fit a handful of parameters to measured collectives.

    Parameters
    ----------
    measured, topology, alloc : see `validate`
    keys : sequence of str
        Parameters to fit; those of `simulator.measured.calibration.USUAL` when left out.
    settings : mapping of str to str or float, optional
        Others that differ from their defaults; and where to begin with those that are fitted.

    Raises
    ------
    MeasuredError, ValidationError, TopologyError, SettingError, ParameterError
        See `validate`; and where nothing is known to fit to.
    """
    table = _read(measured)
    networks = [configured(spec)[0] for spec in _networks(table, topology, alloc)]
    return fit_collectives(table, networks, dict(settings or {}), keys, progress=progress)


def _read(measured: GivenMeasured) -> Measured:
    if isinstance(measured, Measured):
        return measured
    return read_measured([measured] if isinstance(measured, str | Path) else list(measured))


def _networks(
    table: Measured, topology: GivenNetworks, alloc: GivenAllocations
) -> list[GivenTopology]:
    """Return the network of each file, with the hosts of its job."""
    count = len(table.files)
    given = [topology] if isinstance(topology, str | Topology) else list(topology)
    lists = [alloc] if alloc is None or isinstance(alloc, str | Path) else list(alloc)
    for what, many in (("topologies", given), ("allocations", lists)):
        if len(many) not in (1, count):
            raise ValidationError(f"{len(many)} {what} for {count} files: expected one, or as many")
    pairs = zip((given * count)[:count], (lists * count)[:count], strict=True)
    return [spec if hosts is None else _job(spec, hosts) for spec, hosts in pairs]


def _job(spec: GivenTopology, hosts: str | Path) -> Topology:
    if isinstance(spec, Topology):
        order = np.array(nodes_of(spec, read_hosts(str(hosts)), str(hosts)), dtype=np.int64)
        return replace(spec.only(order.tolist()), order=order)
    return topology_from_spec(f"job:{hosts}@{spec}")
