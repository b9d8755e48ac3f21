"""Local search: exchanges of two ranks wherever that gains, in a neighbourhood of choice.

Source: Schulz, Traeff and von Kirchbach, Better process mapping and sparse quadratic assignment,
sections 2 and 3. The neighbourhoods, from the smallest:

| neighbourhood | pairs that are tried | order |
|---|---|---|
| a number d | ranks within d edges of each other in the traffic (N_C^d; N_1 = N_C) | random |
| Np | ranks of one block of s consecutive ranks (Brandfass et al. 2013), O(ranks * s) | by number |
| N2 | all (Heider 1972), O(ranks * ranks) | by number |

The first exchange that gains is made, until every pair has been tried since the last success (or
since anything that its gain depends on has moved, which is the same). A gain takes O(peers of the
two); gain=dense is the older way, O(slots), for comparison: it makes the same exchanges. Any
topology, any objective; memory is linear in ranks, pairs and slots.

Beyond the paper: free slots and ranks without traffic take part as items without peers; where there
are more than 64 of them, N_C^d tries 64 drawn at random at each visit. The paper's pairs come in
one random order, here in random order of the ranks and, for each, of its partners.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

import numpy as np

from hopmap.mappers.cost_model import CostModel
from hopmap.mappers.mapper import mapper
from hopmap.mappers.objectives import (
    ObjectiveName,
    cost_model,
    get_objective,
    least_distance,
    with_free_slots,
)
from hopmap.mappers.options import Count
from hopmap.mappers.stop import Stop, keep
from hopmap.topologies import Mapping, MappingError, Topology
from hopmap.traces import Traffic

if TYPE_CHECKING:
    from .local_search_kernels import LocalSearch

SLICE = 1 << 18  # pairs tried between two looks at the clock


@mapper("local_search", source="Schulz, Traeff, von Kirchbach 2017")
def local_search(
    traffic: Traffic,
    topology: Topology,
    *,
    rng: np.random.Generator,
    initial: Mapping,
    neighbourhood: str = "10",
    s: Count = 64,
    objective: ObjectiveName = "hop_bytes",
    gain: Literal["sparse", "dense"] = "sparse",
    stop: Stop,
) -> Mapping:
    """Exchanges of two ranks that gain, within d edges, in blocks (Np) or anywhere (N2).

    O(peers of both) an exchange.

    - `neighbourhood`: "N2", "Np", or the most edges between two ranks, "1" or "N1" to any number.
    - `s`: ranks of a block, of Np.
    - `gain`: how gains are computed; the mapping is the same.
    """
    from .local_search_kernels import WITHIN, improve

    kind, reach = _neighbourhood(neighbourhood, s)
    model = cost_model(traffic, topology, objective)
    search = start_search(model, initial, topology, rng, dense=gain == "dense")
    named = get_objective(objective)
    watch = stop.watch()
    with keep(lambda: search.places[: traffic.ranks]):
        while not watch.over():
            items = np.flatnonzero(search.changed >= search.visited)
            if not len(items):
                break
            if kind == WITHIN:
                rng.shuffle(items)
            at = 0
            while at < len(items) and not watch.over():
                at = improve(model, search, items, at, SLICE, kind, reach)
                cost = named.value(int(search.own.sum()) // 2)
                watch.report(at, None, f"{named.name} {cost}, {len(items) - at} ranks to look at")
    return search.places[: traffic.ranks]


def start_search(
    model: CostModel,
    initial: Mapping,
    topology: Topology,
    rng: np.random.Generator,
    *,
    dense: bool = False,
) -> LocalSearch:
    """State of a search that has tried nothing yet."""
    from hopmap.mappers import cost_kernels

    from .local_search_kernels import LocalSearch, floors

    places = with_free_slots(initial, topology)
    slots = len(places)
    rows = slots if dense else 0
    degree = np.diff(model.indptr)
    silent = np.flatnonzero(degree == 0)
    return LocalSearch(
        places=places,
        own=cost_kernels.own_costs(model, places),
        least=floors(model, least_distance(topology)),
        changed=np.zeros(slots, dtype=np.int64),
        visited=np.zeros(slots, dtype=np.int64),
        partners=np.empty(slots, dtype=np.int64),
        reached=np.zeros(slots, dtype=np.int64),
        silent=silent.astype(np.int64),
        row_u=np.zeros(rows, dtype=np.int64),
        row_v=np.zeros(rows, dtype=np.int64),
        state=np.array([0, rng.integers(1, 2**31 - 1)], dtype=np.int64),
    )


def _neighbourhood(text: str, s: int) -> tuple[int, int]:
    """Kind of neighbourhood and its reach."""
    from .local_search_kernels import ALL, BLOCKS, WITHIN

    if text.lower() == "n2":
        return ALL, 0
    if text.lower() == "np":
        return BLOCKS, s
    match = re.fullmatch(r"[nN]?_?([1-9]\d{0,8})", text)
    if match is None:
        raise MappingError(
            f"mapper local_search: neighbourhood={text}: expected N2, Np, or a number of edges "
            "of at least 1"
        )
    return WITHIN, int(match[1])
