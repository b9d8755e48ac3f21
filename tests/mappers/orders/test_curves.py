"""Space-filling curves: the thesis' tables, continuity, and any box."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopmap.mappers import map_ranks
from hopmap.topologies import MappingError, Topology, haec, mesh, topology_from_spec, torus
from hopmap.traces import Traffic, nas_traffic
from support.slow import examples

CURVES = ["sweep", "scan", "peano", "gray", "hilbert"]
boxes = st.lists(st.integers(1, 7), min_size=1, max_size=4).filter(lambda d: np.prod(d) <= 600)


def silent(ranks: int) -> Traffic:
    return Traffic.from_pairs(ranks, [], [], [], [])


def curve(name: str, dims) -> np.ndarray:
    """Coordinates of rank 0, 1, 2, ... on a box."""
    topology = mesh(dims)
    return topology.coords[map_ranks(silent(topology.nodes), topology, name)].astype(int)


def bits(values: np.ndarray, offset: int, step: int, count: int) -> np.ndarray:
    return sum(((values >> (step * j + offset)) & 1) << j for j in range(count))


@pytest.mark.parametrize("edge", [2, 4, 8, 16])
def test_sweep_scan_peano_and_gray_on_cubes_follow_the_formulas(edge):
    r = np.arange(edge**3)
    levels = edge.bit_length() - 1
    x, y, z = r % edge, r // edge % edge, r // edge**2
    assert (curve("sweep", [edge] * 3) == np.stack([x, y, z], 1)).all()
    turned = np.where(z % 2, edge - 1 - y, y)
    row = y + edge * z
    assert (
        curve("scan", [edge] * 3) == np.stack([np.where(row % 2, edge - 1 - x, x), turned, z], 1)
    ).all()
    morton = np.stack([bits(r, axis, 3, levels) for axis in range(3)], 1)
    assert (curve("peano", [edge] * 3) == morton).all()
    g = r ^ (r >> 1)
    dealt = [bits(g, offset, 3, levels) for offset in (0, 2, 1)]  # bits go to x, z, y
    for coordinate in dealt:
        shift = coordinate.copy()
        while shift.any():
            shift >>= 1
            coordinate ^= shift
    assert (curve("gray", [edge] * 3) == np.stack(dealt, 1)).all()


OCTANTS = [
    ("000", ("+w", "+u", "+v")), ("010", ("+v", "+w", "+u")), ("110", ("+v", "+w", "+u")),
    ("100", ("-u", "-v", "+w")), ("101", ("-u", "-v", "+w")), ("111", ("+v", "-w", "-u")),
    ("011", ("+v", "-w", "-u")), ("001", ("-w", "+u", "-v")),
]  # fmt: skip


def hilbert_recursion(corner, axes, edge):
    """The thesis' rule as written: eight octants, each with its own axes."""
    if edge == 1:
        yield corner
        return
    half = edge // 2
    for octant, names in OCTANTS:
        start = corner + sum(int(c) * half * axis for c, axis in zip(octant, axes, strict=True))
        turned = []
        for sign, name in names:
            axis = axes["uvw".index(name)]
            if sign == "-":  # starts from the far side of its octant
                start = start + (half - 1) * axis
                axis = -axis
            turned.append(axis)
        yield from hilbert_recursion(start, turned, half)


@pytest.mark.parametrize("edge", [2, 4, 8, 16])
def test_hilbert_on_cubes_is_the_recursion_of_the_thesis(edge):
    points = list(hilbert_recursion(np.zeros(3, int), list(np.eye(3, dtype=int)), edge))
    assert (curve("hilbert", [edge] * 3) == np.array(points)).all()


@given(boxes)
@examples(40)
def test_scan_is_continuous_on_any_box(dims):
    assert (np.abs(np.diff(curve("scan", dims), axis=0)).sum(axis=1) == 1).all()


@pytest.mark.parametrize("dims", [[8], [4, 4], [8, 8], [4, 4, 4], [8, 8, 8], [4, 4, 4, 4]])
def test_hilbert_is_continuous_on_cubes_of_any_dimension(dims):
    assert (np.abs(np.diff(curve("hilbert", dims), axis=0)).sum(axis=1) == 1).all()


@given(boxes, st.sampled_from(CURVES))
@examples(60)
def test_every_curve_visits_every_node_of_any_box_once(dims, name):
    points = curve(name, dims)
    assert len({tuple(point) for point in points.tolist()}) == np.prod(dims)


@pytest.mark.parametrize("name", CURVES)
def test_slots_of_a_node_are_filled_one_after_the_other(name):
    one = map_ranks(silent(8), mesh((4, 2)), name)
    three = map_ranks(silent(24), mesh((4, 2), slots=3), name)
    assert three.tolist() == np.repeat(one, 3).tolist()


@pytest.mark.parametrize("name", CURVES)
def test_the_curve_depends_on_the_box_only(name):
    places = [
        map_ranks(silent(24), build((4, 3, 2)), name).tolist() for build in (mesh, torus, haec)
    ]
    assert places[0] == places[1] == places[2]


def test_an_axis_of_one_node_does_not_matter():
    for name in CURVES:
        flat = map_ranks(silent(64), topology_from_spec("mesh:8x8"), name)
        deep = map_ranks(silent(64), topology_from_spec("mesh:8x8x1"), name)
        assert flat.tolist() == deep.tolist()


@pytest.mark.parametrize(
    ("name", "on_mesh", "on_torus", "on_haec"),
    [
        ("sweep", 216, 200, 152),
        ("scan", 168, 168, 144),
        ("peano", 264, 264, 216),
        ("gray", 216, 168, 168),
        ("hilbert", 200, 184, 152),
    ],
)
def test_pair_hops_of_lu_on_64_nodes(name, on_mesh, on_torus, on_haec):
    """Real dimension-order hops; the thesis' own figures for the mesh are wrong."""
    traffic = nas_traffic("lu.C.64")
    pairs = traffic.undirected()
    for build, expected in ((mesh, on_mesh), (torus, on_torus), (haec, on_haec)):
        topology = build((4, 4, 4))
        node_of = map_ranks(traffic, topology, name)
        assert topology.distance(node_of[pairs.src], node_of[pairs.dst]).sum() == expected


@pytest.mark.parametrize("name", ["peano", "gray", "hilbert"])
def test_a_box_takes_the_enclosing_cube_and_skips_what_is_outside(name):
    cube = curve(name, (8, 8, 8))
    inside = cube[(cube < (3, 7, 5)).all(axis=1)]
    assert curve(name, (3, 7, 5)).tolist() == inside.tolist()


@pytest.mark.parametrize("name", CURVES)
def test_a_long_thin_box_needs_no_enclosing_cube_in_memory(name):
    assert len(set(map_ranks(silent(12_000), mesh((3000, 2, 1, 2)), name).tolist())) == 12_000


@pytest.mark.parametrize("name", ["scan", "peano", "gray", "hilbert"])
def test_a_network_without_coordinates_is_refused(name):
    box = mesh((4, 4))
    router = box.router._replace(dims=np.zeros(0, dtype=np.int64), coords=box.coords[:, :0])
    graph = Topology(
        "file:x", box.slots, box.link_from, box.link_to, box.link_kind, box.kinds, router
    )
    with pytest.raises(MappingError, match=f"mapper {name}: file:x has no coordinates"):
        map_ranks(silent(16), graph, name)
    assert map_ranks(silent(3), graph, "sweep").tolist() == [0, 1, 2]
