"""What ibnetdiscover prints as a network; the lines have the form of its man page."""

import itertools
import random

import numpy as np
import pytest

from hopmap.errors import HopmapWarning
from hopmap.topologies import TopologyError, topology_from_spec
from hopmap.topologies.readers.infiniband import from_ibnetdiscover

SPEC = "file:ib.txt"


def fabric(
    hosts=(2, 2, 2), spines=2, cables=1, rails=("mlx5_0",), missing=(), thin=(), rate="4xHDR"
):
    """Text of leaves, each with so many hosts, below spines; a leaf of each rail."""
    ports: dict[str, list[str]] = {}
    free = itertools.count(1)

    def cable(one, other, texts=("leaf", "spine")):
        ends = [next(free), next(free)]
        for (a, b), (p, q), text in zip(
            ((one, other), (other, one)), (ends, ends[::-1]), texts[::-1], strict=True
        ):
            ports.setdefault(a, []).append(f'[{p}]\t"S-{b}"[{q}]\t\t# "{text}" lid 4 {rate}')

    for rail, adapter in enumerate(rails):
        for leaf, many in enumerate(hosts):
            switch, before = f"1{rail}{leaf:02x}", sum(hosts[:leaf])
            for host in range(before, before + many):
                ports.setdefault(switch, []).append(
                    f'[{next(free)}]\t"H-2{rail}{host:02x}"[1](2{rail}{host:02x}) \t\t'
                    f'# "n{host} {adapter}" lid 9 {rate}'
                )
            for spine in range(spines):
                less = cables if (leaf, spine) in missing else (leaf, spine) in thin
                for _ in range(cables - less):
                    cable(switch, f"3{spine:02x}")
    lines = ["#", "# Topology file: generated on Wed Aug  6 16:11:23 2025", "#"]
    for switch, listed in ports.items():
        lines += ["", "vendid=0x2c9", "devid=0xd2f2", f"switchguid=0x{switch}({switch})"]
        name = '# "MF0;S1:MQM9701/U1" enhanced port 0 lid 73 lmc 0'
        lines += [f'Switch\t65 "S-{switch}"\t\t{name}', *listed]
    lines += ["", "vendid=0x2c9", "caguid=0x2000", 'Ca\t1 "H-2000"\t\t# "n0 mlx5_0"']
    lines += ['[1](2000) \t"S-1000"[1]\t\t# lid 9 lmc 0 "leaf" lid 4 4xHDR', ""]
    return "\n".join(lines)


def test_leaves_below_spines_are_a_fat_tree_with_the_speed_of_its_cables():
    topology = from_ibnetdiscover(fabric(hosts=(3, 2, 1), spines=2, cables=2), SPEC)
    assert topology.names == ("n0", "n1", "n2", "n3", "n4", "n5")
    assert (topology.switches, topology.links) == (5, 2 * (6 + 3 * 2))
    assert topology.distance(0, [1, 2, 3, 5]).tolist() == [2, 2, 4, 4]
    speeds = {kind.name: kind.bandwidth for kind in topology.kinds}
    assert speeds == {"node": 25e9, "local": 50e9}  # HDR is 200 Gbit/s, twice where cables are two
    assert {kind.sources[0] for kind in topology.kinds} == {"ibnetdiscover"}


def test_messages_to_different_hosts_use_different_spines():
    topology = from_ibnetdiscover(fabric(hosts=(1, 4), spines=4), SPEC)
    routes = topology.routes(np.zeros(4, dtype=int), np.arange(1, 5))
    ups = {int(topology.link_to[routes[1][4 * k + 1]]) for k in range(4)}
    assert len(ups) == 4


def test_a_pair_without_a_cable_is_a_link_that_is_down():
    whole = from_ibnetdiscover(fabric(spines=2), SPEC)
    topology = from_ibnetdiscover(fabric(spines=2, missing={(0, 1), (2, 1)}), SPEC)
    assert topology.links == whole.links - 4
    assert topology.distance(0, [2, 5]).tolist() == [4, 4]
    with pytest.raises(TopologyError, match="node 0 is cut off"):
        from_ibnetdiscover(fabric(spines=2, missing={(0, 0), (0, 1)}), SPEC)


def test_fewer_cables_are_a_slower_link():
    topology = from_ibnetdiscover(fabric(cables=2, thin={(1, 0)}), SPEC)
    speeds = {kind.name: kind.bandwidth for kind in topology.kinds}
    assert speeds == {"node": 25e9, "local": 50e9, "local_degraded": 25e9}
    slow = topology.link_kind == [kind.name for kind in topology.kinds].index("local_degraded")
    ends = {
        frozenset(pair)
        for pair in zip(topology.link_from[slow], topology.link_to[slow], strict=True)
    }
    assert slow.sum() == 2 and ends == {frozenset((6 + 1, 6 + 3))}


def test_a_host_has_the_port_of_one_adapter():
    text = fabric(rails=("mlx5_10", "mlx5_9"))
    with pytest.warns(HopmapWarning, match="6 of 6 hosts have several ports.*the first by name"):
        topology = from_ibnetdiscover(text, SPEC)
    assert (topology.nodes, topology.switches) == (6, 3 + 2)
    with pytest.warns(HopmapWarning, match="of which one is used: mlx5_10"):
        other = from_ibnetdiscover(text, SPEC, "mlx5_10")
    assert other.names == topology.names
    with pytest.raises(TopologyError, match="no host has a port ib0: expected one of mlx5_10, ml"):
        from_ibnetdiscover(text, SPEC, "ib0")


def test_ports_without_a_host_are_left_out():
    text = fabric().replace('"n1 mlx5_0"', '"Mellanox Technologies Aggregation Node"')
    with pytest.warns(HopmapWarning, match="1 ports name no host and are left out"):
        assert from_ibnetdiscover(text, SPEC).names == ("n0", "n2", "n3", "n4", "n5")


def test_other_fabrics_are_graphs_and_say_so():
    """A ring of three switches."""
    lines = []
    for k in range(3):
        lines += [f'Switch\t65 "S-{k}"\t\t# "s{k}" base port 0 lid 1 lmc 0']
        lines += [f'[1]\t"H-{k}"[1]({k}) \t\t# "n{k} HCA-1" lid 9 4xEDR']
        lines += [f'[2]\t"S-{(k + 1) % 3}"[3]\t\t# "s" lid 1 4xEDR']
        lines += [f'[3]\t"S-{(k - 1) % 3}"[2]\t\t# "s" lid 1 4xEDR']
    with pytest.warns(
        HopmapWarning, match="cables within a level of switches: all messages between two"
    ):
        topology = from_ibnetdiscover("\n".join(lines), SPEC)
    assert topology.names == ("n0", "n1", "n2")
    assert topology.distance(0, [1, 2]).tolist() == [3, 3]
    assert {kind.bandwidth for kind in topology.kinds} == {12.5e9}


def test_three_levels_are_a_tree_of_merged_switches():
    """Two pods of two leaves and two spines, below two cores."""
    cables = [(f"1{pod}{leaf}", f"2{pod}{spine}") for pod, leaf, spine in np.ndindex(2, 2, 2)]
    cables += [(f"2{pod}{spine}", f"3{core}") for pod, spine, core in np.ndindex(2, 2, 2)]
    ports: dict[str, list[str]] = {}
    for number, (a, b) in enumerate(cables, 10):
        for one, other in ((a, b), (b, a)):
            line = f'[{number}]\t"S-{other}"[{number}]\t\t# "switch" lid 4 4xHDR'
            ports.setdefault(one, []).append(line)
    for host, (pod, leaf, _) in enumerate(np.ndindex(2, 2, 2)):
        line = f'[{host + 1}]\t"H-{host}"[1]({host}) \t\t# "n{host} mlx5_0" lid 9 4xHDR'
        ports[f"1{pod}{leaf}"].append(line)
    blocks = [[f'Switch\t65 "S-{name}"\t\t# "s"', *lines] for name, lines in ports.items()]
    text = "\n".join(line for block in blocks for line in block)
    with pytest.warns(HopmapWarning, match="3 levels of switches: those above the same leaves"):
        topology = from_ibnetdiscover(text, SPEC)
    assert topology.names == tuple(f"n{k}" for k in range(8))
    assert topology.switches == 4 + 2 + 1
    assert topology.distance(0, [1, 2, 4]).tolist() == [2, 4, 6]
    speeds = [topology.kinds[kind].bandwidth for kind in topology.link_kind]
    assert sorted(speeds) == [25e9] * 16 + [50e9] * 8 + [100e9] * 4


def test_it_is_a_spec_with_slots_and_the_hosts_of_a_job(tmp_path):
    (tmp_path / "ib.txt").write_text(fabric(hosts=(3, 3)))
    topology = topology_from_spec(f"nodes:n[4,1]@file:{tmp_path}/ib.txt#mlx5_0*8")
    assert topology.slots.tolist() == [0, 8, 0, 0, 8, 0]
    assert topology.order.tolist() == [4, 1]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("4xHDR", "4xQXR", r"line 9 is '\[1\].*: expected a switch, or a port like \[3\]"),
        ('"S-300"[', '"S-300[', "line .* is .*: expected a switch, or a port"),
        ('Switch\t65 "S-1001"', 'Switch\t65 "S-1000"', "S-1000 twice: expected once"),
        ('"n', '"aggregation of n', "no port leads to a named host: expected one of none"),
    ],
)
def test_what_is_no_such_output_is_refused(old, new, message):
    with pytest.raises(TopologyError, match=message):
        from_ibnetdiscover(fabric().replace(old, new), SPEC)


def test_adapters_alone_are_no_fabric():
    text = 'Ca\t1 "H-b8e92403009ca838"\t\t# "dgx-gb200-n01-c1 HCA-1"\n'
    with pytest.raises(TopologyError, match="no switches: expected the whole output"):
        from_ibnetdiscover(text, SPEC)


@pytest.mark.filterwarnings("ignore::hopmap.errors.HopmapWarning")
def test_damaged_output_is_a_network_or_one_line():
    """Cut anywhere, and with any character replaced."""
    text, draw = fabric(), random.Random(0)
    cut = refused = 0
    for _ in range(300):
        at = draw.randrange(len(text))
        for damaged in (text[:at], text[:at] + draw.choice('"[]#\tSH0\0é') + text[at + 1 :]):
            try:
                assert from_ibnetdiscover(damaged, SPEC).nodes <= 6
            except TopologyError as error:
                assert str(error).startswith(SPEC) and "\n" not in str(error)
                refused += 1
            cut += 1
    assert refused > cut / 4
