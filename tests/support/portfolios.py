"""Runs of the portfolio for sums over pairs, and what took part in them."""

from __future__ import annotations

import numpy as np

from hopmap.mappers import map_ranks, objective_value
from hopmap.mappers.auto import portfolio
from hopmap.mappers.portfolio import Portfolio
from hopmap.mappers.stop import Budget
from hopmap.topologies import Topology, topology_from_spec
from hopmap.traces import Traffic

TREE, MESH = "tree:4:8:9@1:10:100", "mesh:18x16"  # too many slots for tabu search
PILOTS = ("annealing from a start", "annealing from an order")


def some_traffic(ranks: int = 288, seed: int = 1) -> Traffic:
    rng = np.random.default_rng(seed)
    src, dst = np.nonzero(rng.random((ranks, ranks)) < 4 / ranks)
    return Traffic.from_pairs(ranks, src, dst, np.ones(len(src)), rng.integers(1, 99, len(src)))


def run_on(spec: str, traffic: Traffic | None = None, initial=None, **budget) -> Portfolio:
    return portfolio(
        some_traffic() if traffic is None else traffic, topology_from_spec(spec),
        rng=np.random.default_rng(1), initial=initial, objective="hop_bytes",
        stop=Budget(**budget),
    )  # fmt: skip


def members(run: Portfolio) -> list[str]:
    return [step.member for step in run.steps]


def rounds(run: Portfolio) -> list[str]:
    """Members after the first descent."""
    names = members(run)
    return names[names.index("descent") + 1 :]


def good_order():
    """Return a mapping that is better than a bisection."""
    return map_ranks(some_traffic(), topology_from_spec(MESH), "auto(moves=3000000)", seed=3)


def cost_of(topology: Topology, node_of) -> float:
    return objective_value(some_traffic(), topology, node_of, "hop_bytes")


def scattered(model, topology, rng, *_):
    """Stand for a bisection that separates nothing."""
    return rng.permutation(topology.nodes)
