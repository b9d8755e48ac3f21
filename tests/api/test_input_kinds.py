"""What is a trace, a network or a mapping, as far as its name, its file or its type tells."""

import numpy as np
import pytest

import hopmap as hm
from hopmap.api.input_kinds import MAPPING, NETWORK, TRACE, kind_of
from support import DATA, about

RING = hm.Traffic.from_pairs(2, [0], [1], [1], [1])


def test_names_and_objects():
    for given, sort in [
        (DATA / "mg.S.16", TRACE),
        (str(DATA / "mg.S.16" / "traces.otf2"), TRACE),
        ("lu.C.64", TRACE),
        ("stencil:4x4,5pt", TRACE),
        ("collective:bcast=binomial,8,1kB", TRACE),
        (RING, TRACE),
        ("torus:4x4", NETWORK),
        (hm.topology("mesh:2"), NETWORK),
        ([0, 1], MAPPING),
        (np.arange(2), MAPPING),
        ("torus", None),
        ("taurus:4x4", None),
        ("no_such_file.csv", None),
        ("x" * 5000, None),
        (7, None),
        (None, None),
    ]:
        with about(given, sort):
            assert kind_of(given) == sort


@pytest.mark.parametrize(
    ("name", "text", "sort"),
    [
        ("m.csv", b"# by hand\n\nrank, node\n0,1\n", MAPPING),
        ("hosts.txt", b"# hopmap mapping on mesh:2\nnode1\nnode0\n", MAPPING),
        ("t.csv", b"# measured\nsrc,dst,messages,bytes\n0,1,1,1\n", TRACE),
        ("t.mtx", b"%%MatrixMarket matrix coordinate integer general\n", TRACE),
        ("t.npz", b"PK\x03\x04\xff\xfe", TRACE),
        ("t.csv", b"time,size\n1,2\n", None),
        ("t.bin", b"\xff\xfe\x00", None),
    ],
)
def test_files(tmp_path, name, text, sort):
    (tmp_path / name).write_bytes(text)
    assert kind_of(tmp_path / name) == sort
