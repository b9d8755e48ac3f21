"""Launchers' files: what they say, and that they are read back."""

import json
import re
from dataclasses import replace
from types import SimpleNamespace

import networkx as nx
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from hopmap.launchers import formats
from hopmap.launchers.formats import (
    TABLE,
    Launch,
    companions,
    export_mapping,
    get_launcher,
    launchers,
    recognise,
)
from hopmap.launchers.mapping_files import network_of, read_host_names, read_mapping
from hopmap.plugins import load_entry_points
from hopmap.source_files import sources_of
from hopmap.topologies import MappingError, TopologyError, mesh, topology_from_spec, torus
from support import ROOT, about
from support.commands import invoke
from support.slow import examples

NETWORKS = ["torus:2x3x2", "mesh:7", "haec:2x2x2", "cluster:3*2+1*4", "torus:2x3x4x1x2", "mesh:9x2"]
FUGAKU_S = 3  # dimensions of a job


@st.composite
def placements(draw):
    """A network, a mapping of its ranks that leaves some slots free, and names of the nodes."""
    spec = draw(st.sampled_from(NETWORKS))
    slots = draw(st.integers(1, 4))
    network = topology_from_spec(spec if "*" in spec else f"{spec}*{slots}")
    places = draw(st.permutations(np.repeat(np.arange(network.nodes), network.slots).tolist()))
    node_of = np.array(places[: draw(st.integers(1, len(places)))])
    prefixes = draw(st.lists(st.sampled_from(["node", "gpu", "r1-n", "a.b"]), min_size=1))
    first = draw(st.sampled_from([0, 1, 7, 98]))
    width = draw(st.integers(1, 3))
    names = [f"{prefixes[n % len(prefixes)]}{first + n:0{width}d}" for n in range(network.nodes)]
    return network, node_of, names


def refusal(launcher, node_of, names):
    """What a launcher that fills nodes answers to a mapping that it cannot say, else None."""
    numbers = [re.sub(r"\d+", lambda number: number[0].zfill(9), name) for name in names]
    by_name = np.unique(np.array(numbers)[node_of], return_counts=True)[1]
    ranks_on = np.unique(node_of, return_counts=True)[1]
    runs = np.count_nonzero(np.diff(node_of)) + 1
    uneven = len(set(ranks_on.tolist())) > 1
    return {
        "cray": (by_name[:-1] < by_name.max()).any() and "the launcher fills nodes in order",
        "pals": (ranks_on[:-1] < ranks_on.max()).any() and "the launcher fills nodes in order",
        "torchrun": uneven and "expected as many on every host",
        "likwid": (uneven or runs > len(ranks_on)) and "expected consecutive ranks on each host",
    }.get(launcher)


@pytest.mark.parametrize("launcher", TABLE)
@examples(60)
@given(placement=placements())
def test_every_format_is_read_back(launcher, tmp_path_factory, placement):
    """With one or several ranks a node, free slots, free nodes and names of their own.

    Files without comments have to be told the names; a file that is not refused is recognised.
    """
    network, node_of, names = placement
    if refused := refusal(launcher, node_of, names):
        with pytest.raises(MappingError, match=refused):
            export_mapping(launcher, node_of, network, names)
        return
    if launcher in ("fugaku", "bluegene"):
        assume(1 <= len(network.dims) <= (FUGAKU_S if launcher == "fugaku" else 6))
    file = tmp_path_factory.mktemp("launchers") / "file"
    file.write_text(export_mapping(launcher, node_of, network, names))
    form = get_launcher(launcher)
    told = names if form.named and not form.commented else None
    assert read_mapping(file, network, len(node_of), hosts=told).tolist() == node_of.tolist()
    if form.commented:
        assert recognise(file.read_text().splitlines()) == launcher
        assert network_of(file).spec == network.spec
        assert read_host_names(file) == names


def test_comments_give_topology_direction_command_and_names():
    text = export_mapping("openmpi", np.array([1, 0, 1]), mesh((2,), slots=2), file="my ranks")
    assert text == (
        "# hopmap mapping on mesh:2*2\n"
        "# format: openmpi, rank -> node: a line says host and slot (logical core) of a rank\n"
        "# use it: mpirun --map-by rankfile:file='my ranks' ./a.out"
        " (Open MPI 4: mpirun -rf 'my ranks')\n"
        "# nodes node0 to node1 are placeholders: "
        "give yours with --nodelist, --hosts or --names\n"
        "# nodes: node[0-1]\n"
        "rank 0=node1 slot=0\nrank 1=node0 slot=0\nrank 2=node1 slot=1\n"
    )


def test_comments_list_the_nodes_in_use_apart_from_all_of_the_network(tmp_path):
    names = [f"a{n}" for n in range(1, 19)]
    text = export_mapping("slurm", np.arange(15, -1, -1), mesh((18,)), names)
    assert "# nodes: a[1-16]\n# all nodes: a[1-18]\n" in text
    assert "placeholders" not in text
    (tmp_path / "file").write_text(text)
    assert read_host_names(tmp_path / "file") == names
    assert read_mapping(tmp_path / "file", mesh((18,))).tolist() == [*range(15, -1, -1)]


def said(launcher, node_of, network, hosts=None):
    """The lines of a file without its comments."""
    text = export_mapping(launcher, np.array(node_of), network, hosts)
    return [line for line in text.splitlines() if line[0] != "#"]


def test_lists_of_hosts_have_a_line_a_rank():
    network, names = mesh((3,), slots=2), ["a", "b", "c"]
    assert said("slurm", [2, 0, 2], network, names) == ["c", "a", "c"]
    assert said("intel", [2, 0, 2], network, names) == ["c:1", "a:1", "c:1"]
    assert said("simgrid", [2, 0, 2], network, names) == ["c", "a", "c"]


def test_crays_rank_order_is_the_inverse():
    """Position 0, on node 0, plays rank 1; and a line holds the ranks of a node."""
    assert said("cray", [2, 0, 1], mesh((3,))) == ["1", "2", "0"]
    assert said("cray", [1, 1, 0, 0], mesh((2,), slots=2)) == ["2,3", "0,1"]


def test_crays_rank_order_names_the_nodes_that_are_filled():
    """Node 1 is left out, the last one takes fewer."""
    text = export_mapping("cray", np.array([3, 0, 0, 2, 2]), mesh((4,), slots=2))
    assert "# ranks on each: 2\n# filled: node0\n# filled: node[2-3]\n" in text.replace(
        "node0,node[2-3]", "node0\n# filled: node[2-3]"
    )
    assert (
        "srun --nodes=3 --nodelist='node0,node[2-3]' --ntasks=5 --ntasks-per-node=2 "
        "--distribution=block" in text
    )


def test_cray_fills_the_nodes_up_where_slurm_would_level_them():
    """Block alone deals five ranks to two nodes as 3 and 2."""
    text = export_mapping("cray", np.array([0, 0, 0, 0, 1]), mesh((2,), slots=4))
    assert "--ntasks=5 --ntasks-per-node=4 --distribution=block,Pack ./a.out" in text


def test_crays_positions_fill_the_nodes_as_slurm_sorts_their_names(tmp_path):
    """srun does not keep the order of --nodelist; numbers in names count as such."""
    names = ["n10", "n9", "m2"]
    file = tmp_path / "order"
    text = export_mapping("cray", np.array([1, 1, 2, 2, 0]), mesh((3,), slots=2), names)
    assert text.endswith("# filled: m2,n[9-10]\n2,3\n0,1\n4\n")
    file.write_text("0,1\n2,3\n4\n")  # as another tool writes it
    back = read_mapping(file, mesh((3,), slots=2), form="cray", hosts=names)
    assert back.tolist() == [2, 2, 1, 1, 0]


def test_names_that_only_a_topology_has_need_not_be_names_of_hosts():
    odd = ["(0, 0)", "(0, 1)"]
    assert json.loads(export_mapping("json", np.array([1]), mesh((2,)), odd))["host_of"] == odd[1:]
    assert said("fugaku", [1], mesh((2,)), odd) == ["(1)"]


def test_files_beside_have_the_same_names(tmp_path):
    """Also those that a network's file gives; and Python can import the module, whatever a name."""
    graph = nx.relabel_nodes(nx.path_graph(3), {0: "alpha", 1: "beta", 2: "gamma"})
    nx.write_graphml(graph, tmp_path / "net.graphml")
    (tmp_path / "map.csv").write_text("rank,node\n0,2\n1,0\n")
    for to, out in (("simgrid", "hosts.txt"), ("json", "2nd-map.v1.json")):
        words = [tmp_path / "map.csv", "-t", f"file:{tmp_path / 'net.graphml'}", "--to", to]
        result = invoke(["export", *map(str, words), "--out", str(tmp_path / out)])
        assert result.exit_code == 0, result.output
    platform = (tmp_path / "hosts_platform.xml").read_text()
    assert re.findall('host id="([^"]+)"', platform) == ["alpha", "beta", "gamma"]
    assert (tmp_path / "hosts.txt").read_text().split() == ["gamma", "alpha"]
    assert "from _2nd_map_v1_mpi4py import comm" in result.output
    assert (tmp_path / "_2nd_map_v1_mpi4py.py").exists()


def test_hosts_of_simgrid_come_with_their_platform_or_not_at_all(tmp_path):
    with pytest.raises(TopologyError, match="expected at most 1024, since every pair"):
        names = [f"n{n}" for n in range(1600)]
        launch = Launch(np.arange(2), mesh((40, 40)), names)
        companions(get_launcher("simgrid"), tmp_path / "hosts", launch)


def test_the_platform_beside_has_the_speeds_that_the_network_gives(tmp_path):
    """Of a platform's file those of its own: it has no interfaces, nor gets any."""
    given = tmp_path / "given.xml"
    given.write_text(
        '<platform version="4.1"><cluster id="c" prefix="n" suffix="" radical="0-1" speed="1Gf" '
        'bw="1GBps" lat="3us" loopback_bw="7GBps" loopback_lat="2us"/></platform>'
    )
    network = topology_from_spec(f"file:{given}")
    launch = Launch(np.arange(2), network, ["n0", "n1"])
    (text,) = companions(get_launcher("simgrid"), tmp_path / "hosts", launch).values()
    (tmp_path / "back.xml").write_text(text)
    back = topology_from_spec(f"file:{tmp_path / 'back.xml'}")
    assert back.parameters == network.parameters


def test_coordinates_begin_with_x():
    assert said("fugaku", [1, 2], mesh((2, 3))) == ["(1,0)", "(0,1)"]
    assert said("bluegene", [1, 1, 0], mesh((2, 1, 1), slots=2)) == [
        "1 0 0 0",
        "1 0 0 1",
        "0 0 0 0",
    ]


def test_json_lets_a_code_reorder_itself():
    """Processes launched in node order take the rank that belongs to their node."""
    node_of = np.array([2, 0, 1])
    exported = json.loads(export_mapping("json", node_of, mesh((3,))))
    assert exported["rank_at"] == [1, 2, 0]
    assert [node_of[rank] for rank in exported["rank_at"]] == [0, 1, 2]
    assert [exported["rank_at"][p] for p in exported["position_of"]] == [0, 1, 2]


def test_lines_of_names_stay_short():
    """Slurm reads comments, too, into a buffer of limited length."""
    names = [f"machine-{n * n}" for n in range(100)]
    text = export_mapping("slurm", np.arange(100), mesh((100,)), names)
    assert max(map(len, text.splitlines())) < 100


FOREIGN = {
    "openmpi": "rank 1 = +n0 slots=1:0,1 # of two\n\nrank 0=ann@node1 slot=0-3\n"
    "rank 2=node1 slot=1:*\n",
    "slurm": "node1,node0\nnode1*1 # again\n",
    "intel": "# machines\nnode1:1\nnode0:1\nnode1:1\n",
    "fugaku": "( 1 )\n(0)\n(1)\n",
    "bluegene": "1 0\n0 0\n1   1\n",
    "json": '{"node_of": [1, 0, 1]}',
}


@pytest.mark.parametrize("launcher", FOREIGN)
def test_files_that_others_wrote_are_recognised(tmp_path, launcher):
    (tmp_path / "file").write_text(FOREIGN[launcher])
    assert recognise(FOREIGN[launcher].splitlines()) == launcher
    assert read_mapping(tmp_path / "file", mesh((2,), slots=2)).tolist() == [1, 0, 1]


def test_hosts_may_stand_for_several_ranks(tmp_path):
    for text in ("node1:2\nnode0:1\n", "node1*2,node0\n"):
        (tmp_path / "file").write_text(text)
        assert read_mapping(tmp_path / "file", mesh((2,), slots=2)).tolist() == [1, 1, 0]


def test_a_rank_order_that_another_tool_wrote_fills_the_slots_of_all_nodes(tmp_path):
    """It looks like anything, so that its format has to be said."""
    (tmp_path / "order").write_text("# grid_order -R -c 2 -g 4\n0,2-3\n1\n")
    network = mesh((2,), slots=2)
    with pytest.raises(MappingError, match=r"expected rank,node .* --from LAUNCHER --to csv"):
        read_mapping(tmp_path / "order", network)
    assert read_mapping(tmp_path / "order", network, form="cray").tolist() == [0, 1, 0, 1]


@pytest.mark.parametrize("name", ["MPICH_RANK_ORDER", "mpich_rank_order.Grid"])
def test_a_rank_order_is_known_by_the_name_that_cray_asks_for(tmp_path, name):
    """But what its lines say goes first."""
    network = mesh((2,), slots=2)
    (tmp_path / name).write_text("0,2-3\n1\n")
    assert read_mapping(tmp_path / name, network).tolist() == [0, 1, 0, 1]
    (tmp_path / name).write_text("rank,node\n0,1\n")
    assert read_mapping(tmp_path / name, network).tolist() == [1]
    (tmp_path / name).write_text("node1\nnode0\n")
    assert read_mapping(tmp_path / name, network).tolist() == [1, 0]


def test_what_a_format_cannot_say_is_refused():
    for launcher, node_of, network, hosts, message in [
        ("pbs", [0], mesh((2,)), None, "launcher 'pbs': expected one of openmpi"),
        ("slurm", [0], mesh((3,)), ["a", "b"], "2 host names: expected one for each of the 3"),
        ("slurm", [0], mesh((2,)), ["a", "a"], "host a is named twice"),
        ("cray", [0, 0, 1, 2, 2], mesh((3,), slots=2), None, "1 ranks on node 1, 2 on node 0"),
        (
            "fugaku",
            [0],
            mesh((2, 2, 2, 2)),
            None,
            "4 dimensions: expected a mesh or torus of 1 to 3",
        ),
        ("fugaku", [0], topology_from_spec("cluster:2*1"), None, "cluster:2 has no coordinates"),
        ("openmpi", [0], mesh((2,)), ["a", "b c"], "openmpi: host 'b c': expected other names"),
        ("slurm", [0], mesh((300_000,)), None, "300,000 nodes: expected at most 262,144 nodes"),
        ("bluegene", [0], topology_from_spec("hypercube:7"), None, "7 dimensions"),
    ]:
        refused = pytest.raises(MappingError, match=re.escape(message))
        with about(launcher, node_of, network, hosts, message), refused:
            export_mapping(launcher, np.array(node_of), network, hosts)


def test_a_bad_file_is_answered_with_its_name_the_line_and_what_was_expected(tmp_path):
    for form, text, message in [
        ("openmpi", "rank 0=node0\n", "line 1 is 'rank 0=node0': expected rank N=HOST slot=CORE"),
        ("openmpi", "rank 0=node0 slot=0\nrank 1=a slot=0\n", "line 2: host 'a': expected a name"),
        ("openmpi", "rank 0=node0 slot=0\nrank 0=node1 slot=0\n", "line 2: rank 0 again"),
        ("openmpi", "rank 7=node0 slot=0\n", r"line 1: rank 7: expected ranks 0..0"),
        ("openmpi", "rank 0=+n6 slot=0\n", "expected a node up to +n5"),
        ("slurm", "node0\nnode 1\n", "line 2 is 'node 1': expected HOST, HOST:RANKS or HOST*RANKS"),
        ("slurm", "node0\nnode9\n", "line 2: host 'node9': expected a name from node0 to node5"),
        ("intel", "node0:999999999\n", "line 1 is 'node0:999999999': expected 12 ranks at most"),
        ("cray", "0,1\n2;3\n", "line 2 is '2;3': expected ranks like 0,1,4-7"),
        ("cray", "0-99\n", "line 1 is '0-99': expected 12 ranks at most"),
        ("cray", "# filled: node9\n0\n", "filled: host 'node9'"),
        ("cray", "# ranks on each: many\n0\n", "ranks on each: 'many': expected a whole number"),
        ("cray", "# ranks on each: 999999999\n0,1,2\n", "ranks 0, 1, 2 on node 0: expected 2"),
        ("fugaku", "(0,0)\n(0,3)\n", "line 2 is '(0,3)': expected a node from 0 0 to 1 2"),
        ("fugaku", "(0,0,0)\n", "line 1 is '(0,0,0)': expected a node"),
        ("bluegene", "0 0 0\n0 0 0\n", "line 2 is '0 0 0': expected another place than line 1"),
        ("bluegene", "0 0\n", "expected a node from 0 0 to 1 2"),
        ("bluegene", "0 0 x\n", "expected 2 coordinates and a rank's number on its node"),
        ("json", '{"node_of":\n [0,,]}\n', "line 2: expected a JSON object with node_of"),
        ("json", '{"node_of": [0, 1.5]}', "node_of: expected a list of one node number per rank"),
        ("json", "[0, 1]", "expected a JSON object with node_of"),
        ("json", '{"node_of": [-1]}', "rank 0 on node -1: expected a node of mesh:2x3*2, 0..5"),
        ("json", '{"node_of": [99999999999999999999]}', "expected a node of mesh:2x3*2, 0..5"),
        ("slurm", "# nodes: a,b\na\n", "2 host names: expected one for each of the 6 nodes"),
        ("slurm", "# nodes: a[\na\n", "expected a list like node[01-04,7],login"),
        ("slurm", "# nothing\n", "no ranks in it"),
    ]:
        with about(form, text, message):
            file = tmp_path / "bad"
            file.write_text(text)
            with pytest.raises(MappingError, match=re.escape(message)) as error:
                read_mapping(file, mesh((2, 3), slots=2), form=form)
            assert str(file) in str(error.value)


@examples(200)
@given(
    form=st.sampled_from([*TABLE, None]),
    text=st.text('0123 -,:;*#=()[]{}"\n abnodersklt', max_size=60),
)
def test_no_text_makes_a_reader_fail_but_by_saying_why(tmp_path_factory, form, text):
    file = tmp_path_factory.mktemp("any") / "file"
    file.write_text(text)
    try:
        node_of = read_mapping(file, torus((2, 2), slots=2), form=form)
    except MappingError as error:
        assert "\n" not in str(error)
    else:
        assert ((node_of >= 0) & (node_of < 4)).all()


def test_mappings_with_holes_are_written_and_read_back(tmp_path):
    """Nodes without ranks, and of those with ranks some slots that stay empty."""
    for launcher in [*TABLE]:
        with about(launcher):
            network = torus((4, 2, 2), slots=3)
            # The last of these is uneven, which launchers that fill nodes in order cannot do.
            for node_of in ([1, 4, 7], [0, 3, 0, 3, 9, 9], [5, 5, 0, 0, 2]):
                if refusal(launcher, np.array(node_of), [f"node{n}" for n in range(16)]):
                    continue
                file = tmp_path / "file"
                file.write_text(export_mapping(launcher, np.array(node_of), network))
                assert read_mapping(file, network, form=launcher).tolist() == node_of


def test_a_package_brings_a_launcher(monkeypatch):
    mine = replace(get_launcher("slurm"), name="mine", begins="@mine")
    points = {"hopmap.launchers": [SimpleNamespace(name="mine", value="m:MINE", load=lambda: mine)]}
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: points.get(group, []))
    monkeypatch.setattr(formats, "_OTHERS", {})
    load_entry_points.cache_clear()
    try:
        assert get_launcher("mine") is mine
        assert recognise(["@mine"]) == "mine"
        assert launchers()[-1] is mine
    finally:
        load_entry_points.cache_clear()


def test_a_table_of_names_counts_as_code_of_whoever_asks_it():
    """Runs are known by the code that does them, launchers and machines among it."""
    code = {path.name for path in sources_of(ROOT / "hopmap/launchers/formats.py", full=True)}
    assert {"hostfiles.py", "reordering.py", "presets.toml"} <= code
