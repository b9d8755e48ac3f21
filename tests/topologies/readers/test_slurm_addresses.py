"""Networks from the addresses that Slurm gives the nodes of a job."""

import pytest

from hopmap.topologies import TopologyError, hierarchy, topology_from_spec
from hopmap.topologies.readers.slurm_addresses import from_slurm_addresses, is_slurm_addresses

NODES = "\n".join(f"core.spine{n // 8}.leaf-{n // 4}.sh04-16n{n:02}" for n in range(16))


def test_addresses_are_a_tree_of_switches():
    topology = from_slurm_addresses(NODES, "file:a.txt")
    assert hierarchy(topology) == (4, 2, 2)
    assert topology.names[:2] == ("sh04-16n00", "sh04-16n01")
    assert topology.distance(0, [3, 4, 8]).tolist() == [2, 4, 6]


def test_labels_repeated_lines_and_levels_without_a_switch_do_not_matter(tmp_path):
    """Of several tasks a node, under srun -l, as printenv or export prints it."""
    lines = [f"{n}: SLURM_TOPOLOGY_ADDR=.{line}" for n, line in enumerate(NODES.splitlines())]
    (tmp_path / "a.txt").write_text("\n".join([*lines, "", *lines]) + "\n")
    topology = topology_from_spec(f"file:{tmp_path / 'a.txt'}*4")
    assert hierarchy(topology) == (4, 2, 2)
    assert topology.slots.tolist() == [4] * 16


def test_several_switches_of_a_level_are_one():
    topology = from_slurm_addresses("s0.leaf[1,2].a\ns0.leaf[1,2].b\ns0.leaf3.c\ns0.leaf3.d\n", "f")
    assert topology.distance(0, [1, 2]).tolist() == [2, 4]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("s.l.a\ns.m.a\n", "line 2: a again, below other switches"),
        ("s.l.a\nt.l.b\n", "file:a.txt: b: switch l is below s and t: expected one"),
        (".n1\n.n2\n", "line 1: n1: expected switches, as in leaf.n1"),
    ],
)
def test_what_is_no_tree_is_answered_in_one_line(text, message):
    with pytest.raises(TopologyError) as error:
        from_slurm_addresses(text, "file:a.txt")
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_a_name_of_a_topology_requires_a_file_of_slurms():
    with pytest.raises(TopologyError, match="#ring requires a file of Slurm's"):
        from_slurm_addresses(NODES, "file:a.txt", "ring")


def test_other_texts_are_not_taken_for_addresses():
    assert is_slurm_addresses(NODES)
    for text in ("", "n1\nn2\n", "SwitchName=s0 Nodes=n[1-2]\n", "a.b\nn1\n", "a.b c.d\n"):
        assert not is_slurm_addresses(text)
