"""MapLib's files of mappings, written and read back."""

import numpy as np
import pytest

from hopmap.api.exports import export_mapping
from hopmap.launchers.mapping_files import read_mapping, write_mapping
from hopmap.topologies import MappingError, mesh, topology_from_spec
from support.commands import hopmap


def test_a_line_a_node_in_the_order_of_x_y_z():
    """mesh:2x2x2*2: rank 0 on (1, 0, 0), 1 on (0, 0, 0), 2 and 3 on (0, 1, 1)."""
    text = export_mapping(np.array([1, 0, 6, 6]), "maplib", mesh((2, 2, 2), slots=2)).text
    assert text == (
        "hopmap\nx_coord y_coord z_coord number_of_processes process_id(s)\n"
        "0 0 0 1 1\n0 1 1 2 2 3\n1 0 0 1 0\n"
    )


@pytest.mark.parametrize("spec", ["torus:4x3x2*3", "haec:2x2x3", "mesh:1x5x2*2"])
def test_what_is_written_is_read_back(tmp_path, spec):
    topology = topology_from_spec(spec)
    slots = np.repeat(np.arange(topology.nodes), topology.slots)
    node_of = np.random.default_rng(2).permutation(slots)[: len(slots) - 2]
    export_mapping(node_of, "maplib", topology, out=tmp_path / "m.csv")
    assert read_mapping(tmp_path / "m.csv", topology, len(node_of)).tolist() == node_of.tolist()


def test_maplibs_own_files_come_out_as_they_are_stored(shared, tmp_path):
    """Every stored mapping of CG, but for the mapper's name in the first line."""
    compared = 0
    for file in sorted((shared / "maplib/mapping-matters-Mappings/count").glob("cgMAP*/*.csv")):
        topology = topology_from_spec(f"{file.parent.name.removeprefix('cgMAP')}:4x4x4")
        node_of = read_mapping(file, topology, 64)
        theirs = file.read_text().splitlines()[1:]
        assert export_mapping(node_of, "maplib", topology).text.splitlines()[1:] == theirs
        compared += 1
    assert compared == 36


def test_the_command_writes_it(tmp_path):
    write_mapping(tmp_path / "m.csv", [3, 1, 0], mesh((2, 2, 1)))
    out = tmp_path / "mapping.csv"
    hopmap("export", tmp_path / "m.csv", "--to", "maplib", "--out", out)
    assert out.read_text().splitlines()[2:] == ["0 0 0 1 2", "1 0 0 1 1", "1 1 0 1 0"]


def test_a_box_of_other_dimensions_is_refused():
    with pytest.raises(MappingError, match=r"--to maplib: .*three-dimensional, mesh:2x2 is not"):
        export_mapping(np.array([0, 1]), "maplib", mesh((2, 2)))
