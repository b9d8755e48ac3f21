"""Jobs of a scenario: lists of hosts on a machine, with traces that fit them.

A trace of a [[jobs]] table may have fields in braces, which a job of so many nodes fills: {nodes},
{power} for the largest power of two that fits, {square} for the largest square, {box} for three
sizes as near to each other as their product, at most the nodes, allows: "4x4x5".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from math import isqrt
from pathlib import Path
from typing import Any

from hopmap.api.named_files import absolute_in, change_paths
from hopmap.topologies import TopologyError, topology_from_spec
from hopmap.topologies.readers.hosts import lists_in, nodes_of, read_hosts

from . import ScenarioError
from .scenario import Scenario
from .scenario_tables import Jobs

FIELDS = ("nodes", "power", "square", "box")


def write_out_jobs(scenario: Scenario, path: Path) -> dict[str, Any]:
    """Return what a scenario file would say that included the runs of its jobs one by one."""
    description = [scenario.description]
    included: list[dict[str, Any]] = [each.model_dump() for each in scenario.include]
    for place, jobs in enumerate(scenario.jobs):
        at = f"{path}: jobs[{place}]"
        try:
            found, strangers = _found(jobs, path.parent / scenario.folder)
        except TopologyError as error:
            raise ScenarioError(f"{at}: {error}") from None
        if not found:
            most = f"to {jobs.max_nodes}" if jobs.max_nodes else "or more"
            sizes = f"{jobs.min_nodes} {most} nodes in {jobs.hosts}"
            raise ScenarioError(f"{at}: no job of {sizes}: expected at least one")
        for trace in jobs.traces:
            for field in re.findall(r"\{(.*?)\}", trace):
                if field not in FIELDS:
                    known = ", ".join(f"{{{name}}}" for name in FIELDS)
                    raise ScenarioError(f"{at}.traces: {trace!r}: expected no fields but {known}")
        if strangers:
            description.append(
                f"{strangers} jobs of {jobs.hosts} are left out, which have nodes that "
                f"{jobs.topology} does not have."
            )
        included += [
            {
                "traces": list(dict.fromkeys(filled(trace, nodes) for trace in jobs.traces)),
                "topologies": [spec],
                "mappers": jobs.mappers,
                "seeds": jobs.seeds,
            }
            for spec, nodes in found
        ]
    said = "\n".join(filter(None, description))
    return {"include": included, "jobs": [], "folder": "", "description": said}


def _found(jobs: Jobs, folder: Path) -> tuple[list[tuple[str, int]], int]:
    """Return spec and nodes of every job that counts, and how many have unknown nodes."""
    machine = change_paths(jobs.topology, absolute_in(folder))
    network = topology_from_spec(machine)
    found, strangers = [], 0
    for listed in lists_in(str((folder / jobs.hosts).resolve())):
        hosts = read_hosts(listed)
        if not jobs.min_nodes <= len(hosts) <= (jobs.max_nodes or len(hosts)):
            continue
        try:
            nodes = nodes_of(network, hosts, listed)
        except TopologyError:
            if jobs.on_unknown == "error":
                raise
            strangers += 1
            continue
        found.append((f"job:{listed}@{machine}", len(nodes)))
    return found, strangers


def filled(trace: str, nodes: int) -> str:
    """Return a trace with its fields filled in for so many nodes.

    Examples
    --------
    >>> filled("lu.C.{power}", 72), filled("stencil:{box},7pt", 72)
    ('lu.C.64', 'stencil:3x4x6,7pt')
    """
    power, square = 1 << (nodes.bit_length() - 1), isqrt(nodes) ** 2
    fields = {
        "nodes": nodes,
        "power": power,
        "square": square,
        "box": "x".join(map(str, box(nodes))),
    }
    return re.sub(r"\{(\w+)\}", lambda match: str(fields[match[1]]), trace)


@lru_cache(maxsize=256)
def box(nodes: int) -> tuple[int, int, int]:
    """Return three sizes of a product of at most `nodes`: near a cube, then with most nodes.

    No size is more than twice another; of these boxes the one that leaves fewest nodes over.
    """
    return max(_boxes(nodes), key=lambda sides: (sides[0] * sides[1] * sides[2], sides[0]))


def _boxes(nodes: int) -> Iterator[tuple[int, int, int]]:
    for x in range(1, round(nodes ** (1 / 3)) + 1):
        for y in range(x, 2 * x + 1):
            z = min(nodes // (x * y), 2 * x)
            if z >= y:
                yield x, y, z
