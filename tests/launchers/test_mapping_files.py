"""Mapping files, ours and MapLib's."""

import numpy as np
import pytest

from hopmap.launchers.mapping_files import (
    network_of,
    read_host_names,
    read_mapping,
    write_mapping,
)
from hopmap.launchers.node_names import restrict_to_hosts
from hopmap.topologies import MappingError, mesh, torus
from support import about


def test_a_written_mapping_reads_back_and_names_its_topology(tmp_path):
    topology = torus((4, 4), slots=2)
    node_of = np.random.default_rng(1).permutation(32) // 2
    write_mapping(tmp_path / "m.csv", node_of, topology)
    assert read_mapping(tmp_path / "m.csv", topology, 32).tolist() == node_of.tolist()
    assert network_of(tmp_path / "m.csv").spec == "torus:4x4*2"


def test_names_that_a_network_was_given_stand_in_the_mapping(tmp_path):
    ring = restrict_to_hosts(torus((4,)), names="nid[10-13]")
    write_mapping(tmp_path / "m.csv", [3, 1], ring)
    text = (tmp_path / "m.csv").read_text()
    assert text == "# hopmap mapping on torus:4\n# nodes: nid[10-13]\nrank,node\n0,3\n1,1\n"
    assert read_mapping(tmp_path / "m.csv", torus((4,)), 2).tolist() == [3, 1]
    assert read_host_names(tmp_path / "m.csv") == list(ring.names)


def test_maplibs_format_is_read(tmp_path):
    file = tmp_path / "mapping.csv"
    file.write_text(
        "sweep\nx_coord y_coord z_coord number_of_processes process_id(s)\n"
        "0 0 0 1 1\n1 0 0 1 0\n0 1 1 2 2 3\n"
    )
    assert read_mapping(file, mesh((2, 2, 2), slots=2)).tolist() == [1, 0, 6, 6]


def test_files_that_are_no_mapping_are_named(tmp_path):
    for text, message in [
        ("", "no ranks in it"),
        ("rank;node\n", "line 1 is 'rank;node': expected rank,node"),
        ("rank,node\n0,1\n1;2\n", "line 3 is '1;2': expected two whole numbers"),
        ("rank,node\n0,-1\n", "expected two whole numbers"),
        ("rank,node\n0,0\n2,1\n", r"line 3: rank 2: expected ranks 0\.\.1"),
        ("rank,node\n0,0\n0,1\n", "line 3: rank 0 again"),
        ("rank,node\n0,0\n1,4\n", "rank 1 on node 4"),
        ("rank,node\n0,0\n1,0\n", "ranks 0, 1 on node 0: expected 1"),
        ("x\nx_coord y\n0 0 0 1\n", "three-dimensional"),
    ]:
        with about(text, message):
            file = tmp_path / "bad.csv"
            file.write_text(text)
            with pytest.raises(MappingError, match=message) as error:
                read_mapping(file, mesh((2, 2)))
            assert str(file) in str(error.value)


def test_a_mapping_of_another_number_of_ranks_is_refused(tmp_path):
    write_mapping(tmp_path / "m.csv", [0, 1, 2], mesh((2, 2)))
    with pytest.raises(MappingError, match="places 3 ranks: expected 4"):
        read_mapping(tmp_path / "m.csv", mesh((2, 2)), 4)
    with pytest.raises(MappingError, match="places 3 ranks: expected 2"):
        read_mapping(tmp_path / "m.csv", mesh((2, 2)), 2)


def test_what_cannot_be_read_is_said(tmp_path):
    with pytest.raises(MappingError, match="cannot be read as a mapping"):
        read_mapping(tmp_path / "absent.csv", mesh((2, 2)))
    with pytest.raises(MappingError, match=r"`hopmap map -m minmd --out FILE` writes one$"):
        read_mapping("minmd", mesh((2, 2)))
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(MappingError, match="it is not text"):
        read_mapping(tmp_path / "binary", mesh((2, 2)))
    (tmp_path / "nameless.csv").write_text("rank,node\n0,0\n")
    with pytest.raises(MappingError, match="does not name its topology"):
        network_of(tmp_path / "nameless.csv")
