"""Predictions compared with measured collectives: their errors, and fitted parameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from hopmap.api.machine import Machine, Settings
from hopmap.arrays import Ints
from hopmap.errors import HopmapError
from hopmap.mappers import map_ranks
from hopmap.progress import Progress, silent
from hopmap.report.report import inline, render
from hopmap.simulator import Parameters, simulate
from hopmap.simulator.measured.calibration import CollectiveFit, fit_collectives
from hopmap.simulator.measured.errors import (
    LARGE,
    Error,
    agreement_of,
    by_algorithm,
    by_operation,
    choice_of,
    count_unknown,
    describe_order,
    error_of,
    expect_some,
    facts,
    order_of,
)
from hopmap.simulator.measured.files import Measured, read_measured
from hopmap.simulator.measured.prediction import MOST, Prediction, nodes_of_ranks, predict
from hopmap.simulator.programs.from_traffic import program_of_traffic
from hopmap.topologies import Topology, topology_from_spec
from hopmap.topologies.readers.hosts import hosts_of_ranks, nodes_of, read_hosts, text_of
from hopmap.traces import Traffic
from hopmap.traces.safety.atomic_files import replacing, write_text
from hopmap.traces.sources import open_source
from hopmap.version import __version__

STENCIL, CREATE = "stencil:", "cart_create"
IN_ORDER = "mpi"
NOT_MODELLED = "makes a communicator: not modelled"
CALLS, PAGE = "calls.parquet", "validation.html"

MeasuredLike: TypeAlias = str | Path | Measured | Sequence[str | Path]
NetworksLike: TypeAlias = str | Topology | Sequence[str | Topology]
AllocationsLike: TypeAlias = str | Path | Sequence[str | Path] | None


class ValidationError(HopmapError, ValueError):
    """Files, topologies and allocations do not fit each other."""


@dataclass(frozen=True, eq=False)
class Validation:
    """Measured calls, what is predicted for them, and how far that is off."""

    measured: Measured
    prediction: Prediction
    topologies: tuple[str, ...]  # of each file
    notes: tuple[str, ...] = ()  # where an allocation says more than its file

    def to_dict(self) -> dict[str, Any]:
        """All figures as plain values, see `simulator.measured.errors`."""
        between = agreement_of(self.measured, self.prediction)
        return facts(self.measured, self.prediction) | {
            "agreement": {
                "cells": between.cells,
                "tau": between.tau if between.cells else None,
                "why": None if between.cells else describe_order(between),
            },
            "notes": list(self.notes),
        }

    def write(self, folder: str | Path) -> tuple[Path, Path]:
        """Write ``calls.parquet`` and ``validation.html`` into a folder; return their paths.

        The page needs nothing else.
        """
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        calls, page = folder / CALLS, folder / PAGE
        with replacing(calls) as partial:
            pq.write_table(self._calls(), partial)
        write_text(page, self._page())
        return calls, page

    def _calls(self) -> pa.Table:
        measured, prediction, file = self.measured, self.prediction, self.measured.file.tolist()
        return pa.table(
            {
                "file": [measured.files[k] for k in file],
                "topology": [self.topologies[k] for k in file],
                "collective": list(measured.collective),
                "algorithm": list(measured.algorithm),
                "buffer_bytes": measured.size,
                "nodes": measured.nodes,
                "tasks_per_node": measured.tasks,
                "measured": measured.time,
                "predicted": pa.array(prediction.time, mask=np.isnan(prediction.time)),
                "not_simulated": list(prediction.why),
            }
        )

    def _page(self) -> str:
        from hopmap.figures.style import svg_text
        from hopmap.validation.figures import validation_figure

        measured, prediction = self.measured, self.prediction
        pairs = zip(measured.files, self.topologies, strict=True)
        names = [f"{Path(file).name} on {topology}" for file, topology in pairs]
        figure = validation_figure(measured, prediction)
        large = measured.size >= LARGE
        choice, order = choice_of(measured, prediction), order_of(measured, prediction)
        everything = error_of(prediction.time, measured.time)
        beyond = error_of(prediction.time[large], measured.time[large])
        return render(
            Path(__file__).with_name("page.html.j2"),
            names=names,
            facts=[
                ("Calls", f"{everything.rows:,} of {len(measured):,} simulated"),
                ("Fastest algorithm found", f"{choice.right:,} of {choice.cells:,} cells"),
                ("That, or one within 5 % of it", f"{choice.within_5:,} of {choice.cells:,} cells"),
                (
                    "Order of algorithms at 1 MiB and above",
                    describe_order(order),
                ),
                ("Made by", f"hopmap {__version__}"),
            ],
            picture=inline(svg_text(figure), "f"),
            columns=COLUMNS,
            errors=[
                ("all sizes", *error_cells(everything)),
                ("1 MiB and above", *error_cells(beyond)),
            ],
            operations=[
                (f"{o.collective}, {o.ranks:,} ranks, blocks {o.blocks}", *error_cells(o.error))
                for o in by_operation(measured, prediction)
            ],
            groups=[
                (f"{g.collective} {g.algorithm}, {g.sizes}", *error_cells(g.error))
                for g in by_algorithm(measured, prediction)
            ],
            unknown=[
                (f"{c} {a}", why, f"{rows:,}")
                for (c, a, why), rows in count_unknown(measured, prediction).items()
            ],
        )


def validate(
    measured: MeasuredLike,
    topology: NetworksLike,
    *,
    settings: Settings | None = None,
    alloc: AllocationsLike = None,
    ranks: int = 0,
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
        order. Where it has more ranks than any call of its file, it says how many are on a node.
    ranks : int
        Calls of more ranks are listed and not simulated; 0 for any number.
    limit : int
        Packets of a call that is simulated at most; larger ones are listed.
    """
    table, notes = _allocate(measured, alloc)
    machines = [Machine(each, settings or {}) for each in _networks(table, topology, alloc)]
    networks = tuple(machine.network for machine in machines)
    parameters = tuple(machine.parameters for machine in machines)
    prediction = predict(table, networks, parameters, ranks=ranks, limit=limit, progress=progress)
    prediction = _with_stencils(prediction, table, networks, parameters)
    expect_some(table, prediction.why)
    specs = tuple(network.spec for network in networks)
    return Validation(table, prediction, specs, notes)


def calibrate_collectives(
    measured: MeasuredLike,
    topology: NetworksLike,
    *,
    keys: Sequence[str] = (),
    settings: Settings | None = None,
    alloc: AllocationsLike = None,
    ranks: int = 0,
    progress: Progress = silent,
) -> CollectiveFit:
    """Fit a handful of parameters to measured collectives.

    Parameters
    ----------
    measured, topology, alloc, ranks : see `validate`
    keys : sequence of str
        Parameters to fit; `simulator.measured.calibration.USUAL` by default.
    settings : mapping of str to str or float, optional
        Other parameters that differ from their defaults; initial values of the fitted ones.
    """
    table, _ = _allocate(measured, alloc)
    networks = [Machine(spec).network for spec in _networks(table, topology, alloc)]
    return fit_collectives(
        table, networks, dict(settings or {}), keys, ranks=ranks, progress=progress
    )


def _allocate(measured: MeasuredLike, alloc: AllocationsLike) -> tuple[Measured, tuple[str, ...]]:
    """Take ranks a node from an allocation that has more than any call of its file, and say so."""
    table = measured
    if not isinstance(table, Measured):
        table = read_measured([table] if isinstance(table, str | Path) else list(table))
    tasks, notes = table.tasks.copy(), []
    for file, hosts in enumerate(_of_each(alloc, len(table.files), "allocations")):
        if hosts is None:
            continue
        ranks = hosts_of_ranks(text_of(str(hosts)), str(hosts))
        there, mine = len(set(ranks)), table.file == file
        if np.any(table.nodes[mine] * tasks[mine] >= len(ranks)) or len(ranks) % there:
            continue
        whole = mine & (table.nodes == there)
        if whole.any() and len(ranks) > there:
            tasks[whole] = len(ranks) // there
            notes.append(
                f"{table.files[file]}: {len(ranks)} ranks on {there} nodes in {hosts}: taken as "
                f"{len(ranks) // there} a node"
            )
    return replace(table, tasks=tasks), tuple(notes)


def _networks(
    table: Measured, topology: NetworksLike, alloc: AllocationsLike
) -> list[str | Topology]:
    """Return the network of each file, with the hosts of its job."""
    specs = _of_each(topology, len(table.files), "topologies")
    jobs = _of_each(alloc, len(table.files), "allocations")
    pairs = zip(specs, jobs, strict=True)
    return [spec if hosts is None else _job(spec, hosts) for spec, hosts in pairs]


def _of_each(values: Any, count: int, label: str) -> list[Any]:
    """Return one value for each of so many files."""
    one = values is None or isinstance(values, str | Path | Topology)
    many = [values] if one else list(values)
    if len(many) not in (1, count):
        raise ValidationError(f"{len(many)} {label} for {count} files: expected one, or as many")
    return (many * count)[:count]


def _job(spec: str | Topology, hosts: str | Path) -> Topology:
    if isinstance(spec, Topology):
        order = np.array(nodes_of(spec, read_hosts(str(hosts)), str(hosts)), dtype=np.int64)
        return replace(spec.only(order.tolist()), order=order)
    return topology_from_spec(f"job:{hosts}@{spec}")


def _with_stencils(
    prediction: Prediction,
    measured: Measured,
    networks: Sequence[Topology],
    parameters: Sequence[Parameters],
) -> Prediction:
    """Simulate the rows that are exchanges with the neighbours of a grid, too.

    stencil_bench.c of hopmap times these. Of such a row ``collective`` is the stencil
    (``stencil:20x10,star``), ``algorithm`` the mapper that numbered the grid, and ``buffer_bytes``
    what goes to every neighbour. Each file has its own network and parameters.
    """
    time, why = prediction.time.copy(), list(prediction.why)
    for k in range(len(measured)):
        name, file = measured.collective[k], int(measured.file[k])
        if name == CREATE:
            why[k] = NOT_MODELLED
        if not name.startswith(STENCIL):
            continue
        nodes = nodes_of_ranks(
            networks[file], int(measured.nodes[k]), int(measured.tasks[k]), measured.files[file]
        )
        try:
            traffic = open_source(f"{name},bytes={measured.size[k]}").traffic()
            program = program_of_traffic(traffic, rounds=1)
            where = _on_grid(traffic, measured.algorithm[k], nodes, int(measured.tasks[k]))
            time[k] = simulate(program, networks[file], where, parameters=parameters[file]).makespan
            why[k] = ""
        except HopmapError as error:
            why[k] = str(error)
    return replace(prediction, time=time, why=tuple(why))


def _on_grid(traffic: Traffic, mapper: str, nodes: Ints, tasks: int) -> Ints:
    """Return the node of each place of the grid, of the nodes of the processes.

    ``mpi`` is MPI_Cart_create itself, taken to leave ranks in their order, as Open MPI and MPICH
    do. A mapper gets the job's nodes as boxes of equal size, which is all that the benchmark's
    mappers look at.
    """
    if mapper == IN_ORDER:
        return nodes[: traffic.ranks]
    boxes = topology_from_spec(f"cluster:{len(nodes) // tasks}*{tasks}")
    return nodes[::tasks][map_ranks(traffic, boxes, mapper)]


COLUMNS = ("", "calls", "median", "90th percentile", "within 5 %", "10 %", "25 %", "bias")


def error_cells(error: Error) -> tuple[str, ...]:
    """Write an error for people, one text for each of `COLUMNS` but the first; a dash for NaN."""
    shares = [*(f"{100 * share:.1f} %" for share in error[1:-1]), f"{100 * error.bias:+.1f} %"]
    return f"{error.rows:,}", *("-" if share[:-2].endswith("nan") else share for share in shares)
