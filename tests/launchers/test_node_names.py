"""Names of nodes, as hostfiles and Slurm's lists say them."""

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hopmap as hm
from hopmap.launchers.node_names import compress, expand, node_names, restrict_to_hosts, same_nodes
from hopmap.topologies import MappingError, mesh, topology_from_spec, torus
from support import about

PAIR = torus((2,))


@pytest.mark.parametrize(
    ("nodelist", "names"),
    [
        ("node1", ["node1"]),
        ("node[01-03],gpu7", ["node01", "node02", "node03", "gpu7"]),
        ("n[9-11]", ["n9", "n10", "n11"]),
        ("n[1,3-4]-ib", ["n1-ib", "n3-ib", "n4-ib"]),
        ("r[0-1]n[2-3]", ["r0n2", "r0n3", "r1n2", "r1n3"]),
        ("[7-8]", ["7", "8"]),
    ],
)
def test_a_list_of_slurm_stands_for_its_names(nodelist, names):
    assert expand(nodelist) == names


@given(
    st.lists(
        st.from_regex(r"[a-z][a-z0-9-]{0,3}(0|00|09|8|9|99)?[0-9]{0,2}[a-z]?", fullmatch=True),
        min_size=1,
    )
)
def test_names_are_written_as_a_list_and_read_back(names):
    assert expand(",".join(compress(names))) == names


def test_a_run_of_numbers_is_one_item():
    names = [f"node{n:02}" for n in range(98)] + ["node98", "node99", "node100", "node7"]
    assert compress(names) == ["node[00-100]", "node7"]


@pytest.mark.parametrize(
    ("nodelist", "message"),
    [
        ("", "expected a list like node[01-04,7],login"),
        ("n[1-2", "expected a list like"),
        ("n1,,n2", "expected a list like"),
        ("n[2-1]", "range '2-1': expected rising numbers"),
        ("n[a]", "expected a list like"),
        ("n[0-999999999]", "expected rising numbers"),
        ("n[0-9999]m[0-9999]", "more than 262,144 names"),
        ("a/b", "expected a list like"),
    ],
)
def test_what_is_no_list_is_refused(nodelist, message):
    with pytest.raises(MappingError, match=re.escape(message)):
        expand(nodelist)


@pytest.mark.parametrize(
    "text",
    [
        *("a\nb\n", "# nodes\na slots=4\n\nb slots=4\n", "a:2\nb:2\n", "a\na\nb\nb\n"),
        "\ufeffa\r\nb\r\n",
    ],
)
def test_hostfiles_of_several_launchers_name_the_same_nodes(tmp_path, text):
    (tmp_path / "hosts").write_bytes(text.encode())
    for option in ("names", "hosts"):
        assert restrict_to_hosts(PAIR, **{option: tmp_path / "hosts"}).names == ("a", "b")


def test_hostfiles_that_count_slots_give_them_to_the_nodes(tmp_path):
    """The spec says how many ranks a node takes, so that a mapping file needs no hosts."""
    file = tmp_path / "hosts"
    for text in ("a\na\nb\nb\n", "a slots=2\nb slots=2\n", "b:2\na:2\n"):
        file.write_text(text)
        network = restrict_to_hosts(PAIR, hosts=file)
        assert (network.slots.tolist(), network.spec) == ([2, 2], "torus:2*2"), text
    with pytest.raises(MappingError, match="host b has 4 slots here, and 3 in torus:2\\*3"):
        file.write_text("b:4\na\n")
        restrict_to_hosts(topology_from_spec("torus:2*3"), hosts=file)


def test_nodes_without_names_are_numbered():
    assert node_names(PAIR) == ["node0", "node1"]


def test_names_and_hosts_that_make_no_sense_are_refused(tmp_path):
    for named, message in [
        ({"names": "a"}, "names a: 1 host names: expected one for each of the 2 nodes of torus:2"),
        ({"names": "a,a"}, "host a is named twice"),
        ({"nodelist": "a,a"}, "host a is named twice"),
        ({"nodelist": "a,b,c"}, "node list a,b,c: host a: expected nodes of torus:2, node0"),
        ({"nodelist": "a"}, "; --names tells what they are called"),
        ({"names": "a,b", "nodelist": "c,d"}, "host c: expected nodes of torus:2, a to b"),
        ({"hosts": "a\n!\n"}, "line 2 is '!': expected a host name"),
        ({"hosts": "a\nb\n", "nodelist": "a,b"}, "hosts and nodelist are mutually exclusive"),
        ({"hosts": None}, "cannot be read as a list of hosts"),
    ]:
        with about(named, message):
            if "hosts" in named:
                file = tmp_path / "hosts"
                file.unlink(missing_ok=True)
                if named["hosts"]:
                    file.write_text(named["hosts"])
                named = named | {"hosts": file}
            with pytest.raises(MappingError, match=re.escape(message)):
                restrict_to_hosts(PAIR, **named)


def nodes_on(topology):
    return [node for node, slots in enumerate(topology.slots) if slots]


def test_the_nodes_of_a_job_are_found_by_name_in_any_order(tmp_path):
    ring = replace(torus((4,)), names=("login", "n1", "n2", "n3"))
    assert nodes_on(restrict_to_hosts(ring, nodelist="n[2-3],login")) == [0, 2, 3]
    file = tmp_path / "hosts"
    file.write_text("n3 slots=4\nn1\nn3\n")
    assert nodes_on(restrict_to_hosts(ring, hosts=file)) == [1, 3]
    assert nodes_on(restrict_to_hosts(torus((4,)), nodelist="node[1,3]")) == [1, 3]


def test_names_are_of_the_machine_and_hosts_of_the_job():
    machine = restrict_to_hosts(torus((4,)), names="nid[10-13]", nodelist="nid[12,11]")
    assert machine.names == ("nid10", "nid11", "nid12", "nid13")
    assert nodes_on(machine) == [1, 2]


def test_hosts_for_all_nodes_are_what_these_are_called():
    """A torus takes any names; which of its nodes each is, their order says."""
    ring = restrict_to_hosts(torus((4,)), nodelist="gpu7,nid[10-11],login")
    assert ring.names == ("gpu7", "nid10", "nid11", "login")
    assert nodes_on(ring) == [0, 1, 2, 3]
    assert restrict_to_hosts(torus((4,)), nodelist="node[0-3]").names == ()


def test_slots_options_and_spelling_do_not_renumber():
    for named, used in [
        ("torus:4x2x2", "torus:4x2x2*2"),
        ("torus:4x2x2*8,ties=parity", "torus:4x2x2"),
        ("torus:04x2x2", "torus:4x2x2"),
        ("cluster:4*2", "cluster:4*9"),
        ("fattree:4x4,routing=ecmp,seed=3", "fattree:4x4"),
        ("preset:bgq*16", "torus:4x4x4x4x2"),
        ("torus:4x4x4x4x2", "preset:bgq"),
        ("mesh:4x2x2", "haec:4x2x2*2"),
        ("torus:4x2x2", "nodes:node[0-7]@torus:4x2x2"),
        ("names:n[1-4]@torus:4", "nodes:n[2-3]@names:n[1-4]@torus:4*2"),
    ]:
        with about(named, used):
            assert same_nodes(named, topology_from_spec(used))


@pytest.mark.parametrize(
    "named", ["mesh:4x2x2", "torus:2x8", "torus:16", "preset:bgq", "file:net.graphml", "tours:4x4"]
)
def test_other_networks_are_other_nodes(named):
    assert not same_nodes(named, topology_from_spec("torus:4x4"))


def test_nodes_of_a_job_are_those_of_its_machine():
    job = topology_from_spec("nodes:node[0-3]@torus:4x4")
    assert not same_nodes("mesh:4x2x2", job)
    assert not same_nodes("nodes:node[0-3]@mesh:4x2x2", job)


def test_a_file_is_the_same_however_its_folder_is_said(tmp_path, monkeypatch):
    """Where the mapping's is not there, the name has to do."""
    conf = "SwitchName=s1 Nodes=n[1-2]\n"
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "topology.conf").write_text(conf)
    monkeypatch.chdir(tmp_path / "a")
    here = topology_from_spec("file:topology.conf")
    assert same_nodes(f"file:{tmp_path}/a/topology.conf", here)
    assert not same_nodes("file:../b/topology.conf", here)
    assert same_nodes("file:elsewhere/topology.conf", here)
    assert same_nodes("nodes:n1@file:elsewhere/topology.conf", here)
    assert not same_nodes("file:elsewhere/net.graphml", here)
    assert not same_nodes("file:topology.conf#other", here)
    assert not same_nodes("file:topology.conf", mesh((2,)))


def test_ranks_go_to_the_hosts_in_the_order_of_the_list_whichever_way_it_is_named(tmp_path):
    """As a launcher does; `job:` has it so, too."""
    file = tmp_path / "hosts"
    file.write_text("node3\nnode2\nnode0\n")
    expected = topology_from_spec(f"job:{file}@mesh:4").order.tolist()
    assert expected == [3, 2, 0]
    for named in ({"hosts": file}, {"nodelist": "node[3,2,0]"}):
        machine = hm.Machine("mesh:4", **named)
        assert machine.network.order.tolist() == expected
        placed = hm.map_ranks("stencil:3,component", machine, "identity")
        assert placed.node_of.tolist() == expected
