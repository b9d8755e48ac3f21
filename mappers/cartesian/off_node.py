"""What leaves the nodes, messages or bytes sent to ranks of other nodes, and how it is lowered.

The two measures of a mapping of a Cartesian grid (Lehr 2019, section 3.1): what leaves all nodes in
sum, and what leaves the worst node. Each direction counts by itself, as in ``evaluate``.

`refine` lowers them in rounds. Every other round starts from the best so far, those between from
the initial mappings, best first. A round pools the ranks of a few nodes and splits them
(`block_moves_kernels`), again and again: that lowers the sum far more than exchanges do in
the same time, and knows no worst node. Then it anneals by exchanges (`off_node_kernels`), which
know both: nearly cold where the sum comes first, longer and hotter where the worst node does.
Temperatures of exchanges are in units of the mean increase that is proposed at the start. With few
proposals nothing is split or annealed: exchanges that gain, from the best, until none does.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from hopmap.arrays import Ints
from hopmap.mappers.exchanges.annealing import heat_at
from hopmap.mappers.exchanges.assignment import in_slots
from hopmap.mappers.stop import Watch, part_spent
from hopmap.topologies import Mapping, Topology
from hopmap.traces import Traffic

if TYPE_CHECKING:
    from .off_node_kernels import Best, Nodes, Peers

Measure: TypeAlias = Literal["sum", "worst"]
Amount: TypeAlias = Literal["messages", "bytes"]

ROUNDS = 16
SPLIT = {"sum": 0.8, "worst": 0.25}  # part of a round for splitting nodes
FEW = 1_000  # proposals a rank, for all rounds
IDLE = 32  # proposals a rank without any gain that end a descent
SLICE = 1 << 17  # proposals between two looks at the clock
SAMPLE = 2_000  # proposals that a temperature scale is taken from
COLD = 0.04  # last temperature of exchanges
HOT = {"sum": 0.05, "worst": 0.15}  # first one
HOTTER = 0.4  # that of every fourth round where the worst node comes first
EVEN = 1.0  # weight of evenness where the sum comes first, in mean messages
SUM = 0.3  # weight of the sum where the worst node comes first
MOST = 12  # nodes that are split at once
HEAT = 1.2  # first temperature of splitting, in mean weights of a pair
A_RANK = 75  # proposals that take as long as splitting one rank
STEPS = 20  # temperatures of splitting, at least


def peers_of(traffic: Traffic, amount: Amount, items: int) -> Peers:
    """Peers of every rank, with what it sends them and gets; O(pairs log pairs).

    - `amount`: what is counted.
    - `items`: at least as many as ranks; those after the ranks have no peers.
    """
    from .off_node_kernels import Peers

    pairs = traffic.without_self()
    weight = (pairs.messages if amount == "messages" else pairs.bytes).astype(np.int64)
    talks = weight > 0
    src, dst, weight = (a[talks].astype(np.int64) for a in (pairs.src, pairs.dst, weight))
    key, at = np.unique(np.concatenate((src * items + dst, dst * items + src)), return_inverse=True)
    sent, got = np.zeros(len(key), dtype=np.int64), np.zeros(len(key), dtype=np.int64)
    sent[at[: len(src)]] = weight
    got[at[len(src) :]] = weight
    rank, peer = np.divmod(key, items)
    indptr = np.searchsorted(rank, np.arange(items + 1)).astype(np.int64)
    return Peers(indptr, peer, sent, got)


def outgoing(peers: Peers, node_of: Mapping, nodes: int) -> Ints:
    """Add up what every node's ranks send to others, shape (nodes,); `node_of` of every item."""
    rank = np.repeat(np.arange(len(peers.indptr) - 1), np.diff(peers.indptr))
    here, there = node_of[rank], node_of[peers.peer]
    load = np.zeros(nodes, dtype=np.int64)
    np.add.at(load, here[here != there], peers.sent[here != there])
    return load


def value(load: Ints, first: Measure) -> tuple[int, int]:
    """(sum, worst) or (worst, sum) of what leaves the nodes: less is better, the first first."""
    total, worst = int(load.sum()), int(load.max(initial=0))
    return (total, worst) if first == "sum" else (worst, total)


def refine(
    peers: Peers,
    topology: Topology,
    starts: list[Ints],
    best: Best,
    first: Measure,
    moves: int | None,
    watch: Watch,
    rng: np.random.Generator,
) -> None:
    """Lower the two measures of the best by splitting nodes again and by exchanges.

    Each of `starts`, shape (slots,), has the nodes of the ranks and then of the free slots; `best`
    is the best of them, changed in place. `first` says which measure comes first, and `moves` the
    proposals of all rounds, those that splitting stands for among them; by default what the watch
    allows.
    """
    if moves == 0:
        return
    few = moves is not None and moves < FEW * len(best.places)
    rounds = 1 if few else ROUNDS
    for k in range(rounds):
        if best.measures[0] == 0 or watch.over():
            break
        tell = partial(_report, watch, k, rounds, best)
        number = None if moves is None else moves // rounds
        left = watch.remaining()
        share = None if left is None else left / (rounds - k)
        if few:
            exchange(
                peers, assignment_of(peers, topology, best.places, rng), best, first, (0.0, 0.0),
                number, share, watch, tell,
            )  # fmt: skip
            break
        places = (best.places if k % 2 else starts[k // 2 % len(starts)]).copy()
        now, then = SPLIT[first], 1 - SPLIT[first]
        ruin_and_recreate(
            peers, topology.nodes, places, _part(number, now), _part(share, now), watch, tell, rng
        )
        load = outgoing(peers, places, topology.nodes)
        if value(load, first) < tuple(best.measures[:: 1 if first == "sum" else -1]):
            best.places[:] = places
            best.measures[:] = load.sum(), load.max()
        hot = HOTTER if first == "worst" and k % 4 == 2 else HOT[first]
        exchange(
            peers, assignment_of(peers, topology, places, rng), best, first, (hot, COLD),
            _part(number, then), _part(share, then), watch, tell,
        )  # fmt: skip


def ruin_and_recreate(
    peers: Peers,
    nodes: int,
    places: Ints,
    number: float | None,
    seconds: float | None,
    watch: Watch,
    tell: Callable[[], None],
    rng: np.random.Generator,
) -> None:
    """Split the ranks of a few nodes again, ever colder, for so long; change `places` in place."""
    from hopmap.mappers.basic_kernels import Graph
    from hopmap.mappers.bisections.block_moves_kernels import recreate

    graph = Graph(peers.indptr, peers.peer, (peers.sent + peers.got).astype(np.float64))
    if nodes < 2 or not len(graph.weight):
        return
    heat, parent = HEAT * float(graph.weight.mean()), np.zeros(nodes, dtype=np.int64)
    random = rng.integers(1, 2**63, size=1, dtype=np.uint64)
    most = min(MOST, nodes)
    # A trial takes 2 to `most` nodes, each power between them equally often: so many on average.
    chosen = (most - 2) / np.log(most / 2) if most > 2 else 2.0
    cost = A_RANK * chosen * len(places) / nodes
    # A call takes time for all ranks, however few it splits.
    count = max(int(max(SLICE, A_RANK * len(places) / 10) / cost), 1)
    if number is not None:
        count = min(count, max(int(number / cost / STEPS), 1))
    begin = watch.now()
    made, part = 0.0, 0.0
    while part < 1 and not watch.over():
        # No V-cycles: every split is from scratch.
        recreate(graph, places, parent, most, count, heat * (1 - part), 0.0, random)
        made += count * cost
        part = part_spent(made, number, watch.now() - begin, seconds)
        tell()


def exchange(
    peers: Peers,
    nodes: Nodes,
    best: Best,
    first: Measure,
    temperatures: tuple[float, float],
    number: float | None,
    seconds: float | None,
    watch: Watch,
    tell: Callable[[], None],
) -> None:
    """Anneal from the first temperature to the last, for so long; the best is kept."""
    from .off_node_kernels import Guide, anneal

    message = float(peers.sent.sum() / max((peers.sent > 0).sum(), 1))
    unit = float(best.measures[1])
    guide = Guide(1.0, EVEN * message, unit) if first == "sum" else Guide(SUM, unit, unit)
    proposals = partial(anneal, peers, nodes, best, first == "sum", guide)
    scale = proposals(0.0, 0.0, SAMPLE)
    begin = watch.now()
    made, part, gained, measures = 0, 0.0, 0, best.measures.tolist()
    while part < 1 and not watch.over():
        count = SLICE if number is None else min(SLICE, max(int(number) - made, 1))
        ahead = part_spent(made + count, number, watch.now() - begin, seconds)
        if number is None:
            ahead = max(ahead, part)
        start, end = (scale * heat_at(*temperatures, p) for p in (part, min(ahead, 1.0)))
        proposals(start, end, count)
        part, made = ahead, made + count
        tell()
        if measures != best.measures.tolist():
            gained, measures = made, best.measures.tolist()
        if temperatures[0] == 0 and made - gained >= IDLE * len(best.places):
            break


def _part(whole: float | None, part: float) -> float | None:
    return None if whole is None else whole * part


def _report(watch: Watch, done: int, rounds: int, best: Best) -> None:
    watch.report(done, rounds, f"sum {best.measures[0]}, worst node {best.measures[1]}")


def assignment_of(
    peers: Peers, topology: Topology, places: Ints, rng: np.random.Generator
) -> Nodes:
    """Everybody at their places."""
    from .off_node_kernels import Nodes

    items, nodes = len(places), topology.nodes
    rank = np.repeat(np.arange(items), np.diff(peers.indptr))
    away = places[rank] != places[peers.peer]
    apart = np.zeros(items, dtype=np.int64)
    np.add.at(apart, rank[away], (peers.sent + peers.got)[away])
    item_at, slot_of = in_slots(places)
    return Nodes(
        places=places.copy(),
        slot_of=slot_of,
        item_at=item_at,
        first=np.concatenate(([0], np.cumsum(topology.slots))).astype(np.int64),
        apart=apart,
        load=outgoing(peers, places, nodes),
        change=np.zeros(nodes, dtype=np.int64),
        touched=np.zeros(nodes, dtype=np.int64),
        marked=np.zeros(nodes, dtype=np.bool_),
        random=rng.integers(1, 2**63, size=1, dtype=np.uint64),
    )
