"""Static metrics: their definitions, recomputed the slow way, and the published tables."""

import csv
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hopmap.mappers import map_ranks, objective_value
from hopmap.simulator.metrics.metrics import MetricsError, evaluate, hot_links, link_loads
from hopmap.topologies import MappingError, Topology, topology_from_spec
from hopmap.traces import Traffic, nas_traffic
from support import ROOT

CURVES = ("sweep", "scan", "peano", "gray", "hilbert")
TABLE = ROOT / "scenarios" / "tables" / "haec_thesis_lu_c_64.csv"
BOXES = ["mesh:4x3x2", "torus:5x4", "torus:4x4x4", "haec:3x2x3", "torus:6", "mesh:3x3*3"]
SPECS = [
    *BOXES,
    "hypercube:3",
    "fattree:3x3:1x2*2",
    "fattree:2x2x2,routing=ecmp,seed=7",
    "cluster:2*3+4",
]
SPECS += ["dragonfly:2x3x1", "dragonfly:1x4x2x4*2"]


@st.composite
def placed_traffic(draw, specs=SPECS) -> tuple[Traffic, Topology, np.ndarray]:
    topology = topology_from_spec(draw(st.sampled_from(specs)))
    places = np.repeat(np.arange(topology.nodes), topology.slots)
    ranks = draw(st.integers(1, len(places)))
    rows = draw(
        st.lists(
            st.tuples(
                st.integers(0, ranks - 1),
                st.integers(0, ranks - 1),
                st.integers(1, 50),
                st.integers(0, 10**6),
            ),
            max_size=25,
        )
    )
    traffic = Traffic.from_pairs(ranks, *np.array(rows, dtype=np.int64).reshape(-1, 4).T)
    return traffic, topology, np.array(draw(st.permutations(places.tolist()))[:ranks])


@settings(deadline=None)
@given(placed_traffic())
def test_every_metric_equals_its_definition(case):
    traffic, topology, node_of = case
    metrics = evaluate(traffic, topology, node_of)
    for quantity, measure in (("messages", metrics.messages), ("bytes", metrics.bytes)):
        weight = getattr(traffic, quantity)
        on_node: dict[int, int] = {}
        between: dict[tuple[int, int], int] = {}
        link: dict[int, int] = {}
        leaving: dict[int, int] = {}
        over: dict[int, int] = {}
        hops_of, weighted = [], []
        for s, d, w in zip(traffic.src, traffic.dst, weight, strict=True):
            u, v = int(node_of[s]), int(node_of[d])
            _, route = topology.routes([u], [v])
            if w:
                hops_of.append(len(route))
                weighted.append(len(route) * int(w))
            for step in route.tolist():
                link[step] = link.get(step, 0) + int(w)
                over[step] = over.get(step, 0) + (w > 0)
            if u == v:
                on_node[u] = on_node.get(u, 0) + int(w)
            else:
                between[u, v] = between.get((u, v), 0) + int(w)
                leaving[u] = leaving.get(u, 0) + int(w)
        for summary, entries in (
            (measure.ieplc, weight.tolist()),
            (measure.ianlc, on_node.values()),
            (measure.ienlc, between.values()),
            (measure.ienpc, link.values()),
        ):
            used = [e for e in entries if e]
            assert summary.total == sum(used)
            assert summary.avg == (sum(used) / len(used) if used else 0)
            assert (summary.min, summary.max) == ((min(used), max(used)) if used else (0, 0))
        assert measure.ieplc.total == measure.ianlc.total + measure.ienlc.total
        assert measure.dilation.sum == measure.ienpc.total
        between = int(weight[traffic.src != traffic.dst].sum())
        assert measure.dilation.avg == (measure.dilation.sum / between if between else 0)
        assert measure.dilation.max == max(hops_of, default=0)
        assert measure.dilation.max_pair == max(weighted, default=0)
        assert measure.congestion.max == measure.ienpc.max
        assert measure.congestion.pairs == max(over.values(), default=0)
        assert measure.congestion.used_links == sum(1 for e in link.values() if e)
        assert measure.congestion.links == topology.links
        assert measure.off_node.total == measure.ienlc.total
        assert measure.off_node.max == max(leaving.values(), default=0)
        if measure.congestion.max:
            loads = link_loads(traffic, topology, node_of)[quantity == "bytes"]
            worst = int(loads.argmax())
            ends = [int(topology.link_from[worst]), int(topology.link_to[worst])]
            assert measure.congestion.max_link == ends


@settings(deadline=None)
@given(placed_traffic())
def test_the_cardinality_is_what_mappers_work_for(case):
    traffic, topology, node_of = case
    both = traffic.without_self().undirected()
    for convention in ("hopmap", *(["maplib"] if topology.dims else [])):
        metrics = evaluate(traffic, topology, node_of, convention)
        assert metrics.cardinality == objective_value(traffic, topology, node_of, "cardinality")
        assert metrics.pairs == both.pairs


def test_dilation_and_congestion_as_section_2_6_of_the_haec_thesis_has_them():
    """mesh:4: 0>1 (5 messages), 0>2 (3), 3>0 (2) and 0>0 (9), by hand."""
    traffic = Traffic.from_pairs(4, [0, 0, 3, 0], [1, 2, 0, 0], [5, 3, 2, 9], [5, 3, 2, 9])
    metrics = evaluate(traffic, topology_from_spec("mesh:4"), [0, 1, 2, 3])
    measure = metrics.messages
    assert (measure.dilation.sum, measure.dilation.max_pair) == (5 + 6 + 6, 6)
    assert (measure.congestion.max, measure.congestion.pairs) == (8, 2)  # on 0 -> 1
    assert (metrics.cardinality, metrics.pairs) == (1, 3)
    # The published way adds both directions of a pair, and of a mesh the ring's way round.
    both = evaluate(traffic, topology_from_spec("torus:4"), [0, 1, 2, 3], "maplib").messages
    assert (both.dilation.max_pair, both.congestion.pairs) == (9, 2)


def test_mean_hops_are_of_messages_that_another_rank_gets():
    """0>1 (5 messages, a hop), 0>2 (3, two hops), 3>0 (2, three), and 0>0 (9), which do not count.

    In cg.W.16 every twelfth byte stays with its rank: with all others a hop away the mean is 1.
    """
    traffic = Traffic.from_pairs(4, [0, 0, 3, 0], [1, 2, 0, 0], [5, 3, 2, 9], [5, 3, 2, 9])
    dilation = evaluate(traffic, topology_from_spec("mesh:4"), [0, 1, 2, 3]).messages.dilation
    assert dilation.avg == (5 + 6 + 6) / (5 + 3 + 2)
    cg, cluster = nas_traffic("cg.W.16"), topology_from_spec("haec:1x1x16")
    size = evaluate(cg, cluster, range(16)).bytes.dilation
    itself = cg.src == cg.dst
    assert size.avg == pytest.approx(size.sum / cg.bytes[~itself].sum())
    assert cg.bytes[itself].sum() / cg.bytes.sum() == pytest.approx(1 / 12, rel=0.01)
    alone = Traffic.from_pairs(1, [0], [0], [3], [3])
    assert evaluate(alone, topology_from_spec("mesh:1"), [0]).messages.dilation.avg == 0


def test_of_several_ranks_a_node_the_published_ianlc_is_of_pairs():
    """MapLib: lu.S.16 by sweep on mesh:2x2x1*4, 12 pairs on nodes, 1,130 on average."""
    topology = topology_from_spec("mesh:2x2x1*4")
    traffic = nas_traffic("lu.S.16")
    node_of = map_ranks(traffic, topology, "sweep")
    ianlc = evaluate(traffic, topology, node_of, "maplib").messages.ianlc
    ours = evaluate(traffic, topology, node_of).messages.ianlc
    assert ianlc.total == ours.total == 13_554
    assert (ianlc.avg, ianlc.maplib_avg, ours.avg) == (13_554 // 12, 1_130, 3_388.5)
    assert (ianlc.min, ianlc.max) == (1_129, 1_130)


@settings(deadline=None)
@given(placed_traffic())
def test_hot_links_name_the_pairs_behind_them(case):
    traffic, topology, node_of = case
    messages, volume = link_loads(traffic, topology, node_of)
    hot = hot_links(traffic, topology, node_of, top=3, pairs=10**6)
    assert [link.bytes for link in hot] == sorted(volume[messages > 0], reverse=True)[:3]
    for link in hot:
        assert sum(pair[2] for pair in link.pairs) == link.messages == messages[link.link]
        assert sum(pair[3] for pair in link.pairs) == link.bytes == volume[link.link]


def published_ienpc(traffic: Traffic, topology: Topology, node_of: np.ndarray) -> list[int]:
    """Rules 1 to 5 of the published metric, in plain Python, for messages."""
    loads: dict[tuple[object, object], int] = {}
    coords = [tuple(c) for c in topology.coords.tolist()]
    dims = topology.dims
    family = topology.spec.split(":")[0]
    both: dict[tuple[int, int], int] = {}
    for s, d, w in zip(traffic.src, traffic.dst, traffic.messages, strict=True):
        pair = (min(s, d), max(s, d))
        both[pair] = both.get(pair, 0) + int(w)
    for (s, d), w in both.items():
        a, b = sorted((coords[node_of[s]], coords[node_of[d]]))
        walk = [a]
        if sum(abs(p - q) for p, q in zip(a, b, strict=True)) <= 1:
            walk.append(b)
        elif family == "haec" and a[2] != b[2]:
            step = 1 if b[2] > a[2] else -1
            walk += [(b[0], b[1], z) for z in range(a[2] + step, b[2] + step, step)]
        else:
            here = list(a)
            for k in range(2 if family == "haec" else len(dims)):
                near = abs(here[k] - b[k]) <= dims[k] // 2
                sign = 1 if family != "mesh" and near else -1
                while here[k] < b[k]:
                    here[k] = (here[k] + sign) % dims[k]
                    walk.append(tuple(here))
                while here[k] > b[k]:
                    here[k] = (here[k] - sign) % dims[k]
                    walk.append(tuple(here))
        for hop in pairwise(walk):
            loads[hop] = loads.get(hop, 0) + w
    values = list(loads.values())
    return (
        [sum(values), sum(values) // len(values), min(values), max(values)] if values else [0] * 4
    )


@settings(deadline=None)
@given(placed_traffic(BOXES))
def test_the_published_convention_follows_its_rules(case):
    traffic, topology, node_of = case
    ienpc = evaluate(traffic, topology, node_of, "maplib").messages.ienpc
    expected = published_ienpc(traffic, topology, node_of)
    assert [ienpc.total, ienpc.avg, ienpc.min, ienpc.max] == expected


with TABLE.open() as stream:
    CURVE_ROWS = [row for row in csv.DictReader(stream) if row["mapper"] in CURVES]


@pytest.mark.parametrize("row", CURVE_ROWS, ids=lambda row: f"{row['topology']}-{row['mapper']}")
def test_table_a1_of_the_haec_thesis_to_the_last_digit(row):
    traffic = nas_traffic("lu.C.64")
    topology = topology_from_spec(f"{row['topology']}:4x4x4")
    node_of = map_ranks(traffic, topology, row["mapper"])
    ienpc = evaluate(traffic, topology, node_of, "maplib").messages.ienpc
    ours = [ienpc.total, ienpc.avg, ienpc.min, ienpc.max]
    assert ours == [int(row[f"ienpc_{key}"]) for key in ("total", "avg", "min", "max")]


def test_the_table_has_all_fifteen_curve_rows():
    assert len(CURVE_ROWS) == 15


@pytest.mark.parametrize(
    ("curve", "mesh", "torus", "haec"),
    [
        ("sweep", 216, 200, 152),
        ("scan", 168, 168, 144),
        ("peano", 264, 264, 216),
        ("gray", 216, 168, 168),
        ("hilbert", 200, 184, 152),
    ],
)
def test_correct_pair_hops_of_the_curves(curve, mesh, torus, haec):
    """Each of the 112 neighbour pairs of LU.C.64 counted once, times its hops."""
    traffic = nas_traffic("lu.C.64")
    for family, expected in (("mesh", mesh), ("torus", torus), ("haec", haec)):
        topology = topology_from_spec(f"{family}:4x4x4")
        node_of = map_ranks(traffic, topology, curve)
        pairs = traffic.undirected()
        assert topology.distance(node_of[pairs.src], node_of[pairs.dst]).sum() == expected
        total = evaluate(traffic, topology, node_of).messages.ienpc.total
        assert total // 80829 == expected


def test_json_has_the_documented_keys():
    metrics = evaluate(
        nas_traffic("lu.S.4"), topology_from_spec("mesh:2x2"), [0, 1, 2, 3]
    ).to_dict()
    assert list(metrics) == [
        *("convention", "ranks", "nodes", "cardinality", "pairs", "messages", "bytes"),
        "hot_links",
    ]
    measure = metrics["messages"]
    summary = {"total", "avg", "min", "max"}
    for key in ("ieplc", "ianlc", "ienlc", "ienpc"):
        assert set(measure[key]) == summary
    assert set(measure["dilation"]) == {"sum", "avg", "max", "max_pair"}
    assert set(measure["congestion"]) == {"max", "max_link", "pairs", "used_links", "links"}
    assert set(measure["off_node"]) == {"total", "max"}
    assert isinstance(measure["ienpc"]["total"], int)


def test_wrong_use_is_refused():
    traffic, topology = nas_traffic("lu.S.4"), topology_from_spec("mesh:2x2")
    with pytest.raises(MetricsError, match="expected one of hopmap, maplib"):
        evaluate(traffic, topology, [0, 1, 2, 3], "mablib")
    with pytest.raises(MappingError, match="places 3 ranks: expected 4"):
        evaluate(traffic, topology, [0, 1, 2])
    tree = topology_from_spec("fattree:2x2")
    with pytest.raises(MappingError, match="fattree:2x2 has no coordinates: expected a mesh"):
        evaluate(traffic, tree, [0, 1, 2, 3], "maplib")
    line = topology_from_spec("mesh:5000000")  # up to 5,000,000 hops for each of 8 rank pairs
    with pytest.raises(MappingError, match=r"up to 40,000,000 hops .* at most 33,554,432, or"):
        evaluate(traffic, line, [0, 1, 2, 3], "maplib")
    assert evaluate(traffic, line, [0, 1, 2, 3]).messages.dilation.max == 2
