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

from hopmap.topologies import TopologyError, topology_from_spec
from hopmap.topologies.job import OVER, split
from hopmap.topologies.readers.hosts import lists_in, nodes_of, read_hosts
from hopmap.topologies.spec import FILE

from .scenario import Include, Jobs, Scenario, ScenarioError

FIELDS = ("nodes", "power", "square", "box")


def with_jobs(scenario: Scenario, path: Path) -> Scenario:
    """Return the scenario with what its jobs run among what it includes.

    Raises
    ------
    ScenarioError
        Lists that cannot be read, an unknown field of a trace, hosts that the machine does not
        have, no job of the sizes that are asked for.
    """
    included, said = list(scenario.include), [scenario.description]
    for place, jobs in enumerate(scenario.jobs):
        at = f"{path}: jobs[{place}]"
        try:
            found, strangers = _found(jobs, path.parent / scenario.folder)
        except TopologyError as error:
            raise ScenarioError(f"{at}: {error}") from None
        if not found:
            raise ScenarioError(f"{at}: no job of {_sizes(jobs)}: expected at least one")
        for trace in jobs.traces:
            for field in re.findall(r"\{(.*?)\}", trace):
                if field not in FIELDS:
                    raise ScenarioError(
                        f"{at}.traces: {trace!r}: expected no fields but "
                        f"{', '.join(f'{{{name}}}' for name in FIELDS)}"
                    )
        if strangers:
            said.append(
                f"{strangers} jobs of {jobs.hosts} are left out, which have nodes that "
                f"{jobs.topology} does not have."
            )
        included += [
            Include(
                traces=list(dict.fromkeys(filled(trace, nodes) for trace in jobs.traces)),
                topologies=[spec],
                mappers=jobs.mappers,
                seeds=jobs.seeds,
            )
            for spec, nodes in found
        ]
    description = "\n".join(filter(None, said))
    return scenario.model_copy(
        update={"include": included, "jobs": [], "folder": "", "description": description}
    )


def _found(jobs: Jobs, folder: Path) -> tuple[list[tuple[str, int]], int]:
    """Return spec and nodes of every job that counts, and how many have unknown nodes."""
    machine = beside(jobs.topology, folder)
    network = topology_from_spec(machine)
    found, strangers = [], 0
    for listed in lists_in(str((folder / jobs.hosts).resolve())):
        hosts = read_hosts(listed)
        if not jobs.min_nodes <= len(hosts) <= (jobs.max_nodes or len(hosts)):
            continue
        try:
            nodes = nodes_of(network, hosts, listed)
        except TopologyError:
            if jobs.unknown == "refuse":
                raise
            strangers += 1
            continue
        found.append((f"job:{listed}@{machine}", len(nodes)))
    return found, strangers


def _sizes(jobs: Jobs) -> str:
    most = f"to {jobs.max_nodes}" if jobs.max_nodes else "or more"
    return f"{jobs.min_nodes} {most} nodes in {jobs.hosts}"


def beside(spec: str, folder: Path) -> str:
    """Make the files in a spec, of a network or of a job's hosts, relative to a folder."""
    name, colon, rest = spec.strip().partition(":")
    if colon and name == "file":
        return f"{FILE}{(folder / rest).resolve()}"
    parts = split(rest) if colon and name in OVER else None
    if parts is None:
        return spec
    first = str((folder / parts[0]).resolve()) if name == "job" else parts[0]
    return f"{name}:{first}@{beside(parts[1], folder)}"


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
