"""Machines as hwloc writes them, versions 1 and 2."""

import pytest

from hopmap.topologies import TopologyError, hierarchy, topology_from_spec


def version_2(packages: int, caches: int, cores: int) -> str:
    """Memory beside the parts; caches of their own around every core; two threads a core."""
    core = '<object type="L2Cache"><object type="L1Cache"><object type="Core">'
    core += '<object type="PU"/><object type="PU"/></object></object></object>'
    cache = f'<object type="L3Cache">{core * cores}</object>'
    package = f'<object type="Package"><object type="NUMANode"/>{cache * caches}</object>'
    device = '<object type="Bridge"><object type="PCIDev"/></object>'
    return (
        '<?xml version="1.0"?><!DOCTYPE topology SYSTEM "hwloc2.dtd"><topology version="2.0">'
        f'<object type="Machine" os_index="0">{package * packages}{device}</object></topology>'
    )


@pytest.mark.parametrize(
    ("shape", "sizes"), [((2, 4, 8), (8, 4, 2)), ((1, 4, 8), (8, 4)), ((2, 1, 6), (6, 2))]
)
def test_levels_are_the_objects_of_several_parts(tmp_path, shape, sizes):
    file = tmp_path / "machine.xml"
    file.write_text(version_2(*shape))
    topology = topology_from_spec(f"file:{file}")
    assert hierarchy(topology) == sizes
    assert topology.spec == f"file:{file}"
    assert topology.distance(0, [0, 1, topology.nodes - 1]).tolist() == [
        *(0, 1, 10 ** (len(sizes) - 1))
    ]


def test_version_1_has_memory_around_its_sockets(tmp_path):
    socket = '<object type="Socket">' + '<object type="Core"/>' * 6 + "</object>"
    node = f'<object type="NUMANode">{socket}</object>'
    file = tmp_path / "old.xml"
    file.write_text(f'<topology><object type="Machine">{node * 4}</object></topology>')
    assert hierarchy(topology_from_spec(f"file:{file}")) == (6, 4)


def test_one_core_is_a_machine(tmp_path):
    file = tmp_path / "one.xml"
    file.write_text(version_2(1, 1, 1))
    assert topology_from_spec(f"file:{file}").nodes == 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("<topology><object", "cannot be read as XML"),
        ("<graph/>", "root element 'graph' .did you mean graphml"),
        ('<topology><object type="Machine"/></topology>', "no objects of type Core"),
        (
            '<topology><object type="Machine"><object type="Package"><object type="Core"/></object>'
            '<object type="Package"><object type="Core"/><object type="Core"/></object></object>'
            "</topology>",
            "the parts of Machine differ",
        ),
    ],
)
def test_what_is_refused_is_refused_in_one_line(tmp_path, text, words):
    file = tmp_path / "bad.xml"
    file.write_text(text)
    with pytest.raises(TopologyError, match=words) as caught:
        topology_from_spec(f"file:{file}")
    assert "\n" not in str(caught.value)
