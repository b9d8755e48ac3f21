"""Measured on Fugaku, where the data are there: trees of 64 MiB by bandwidth and copies alone."""

from __future__ import annotations

import numpy as np
import pytest

from hopmap.simulator import Parameters
from hopmap.simulator.measured.errors import error_of
from hopmap.simulator.measured.files import read_measured
from hopmap.simulator.measured.prediction import predict
from hopmap.topologies import topology_from_spec

TREES = [("bcast", "default-binomial"), ("bcast", "default-binary-tree"),
         ("gather", "default-binomial"), ("scatter", "default-binomial")]  # fmt: skip


@pytest.mark.parametrize("shape", ["2x2x2", "4x4x4"])
def test_trees_at_64_mib_are_predicted_to_two_percent_by_links_and_copies(shared, shape):
    folder = shared / "measured" / "fugaku"
    if not folder.is_dir():
        pytest.skip("no measured times of Fugaku beside the repository")
    measured = read_measured([folder / f"{shape}.csv"])
    rows = zip(measured.collective, measured.algorithm, measured.size.tolist(), strict=True)
    chosen = measured.part(np.array([(c, a) in TREES and n == 2**26 for c, a, n in rows]))
    network = topology_from_spec(f"tofud:job={shape},order=YZX").with_links(bandwidth=6.35e9)
    interfaces = Parameters(
        nic="round_robin",
        nic_rails=6,
        injection_bandwidth=6.8e9,
        ejection_bandwidth=40.8e9,
        collective_copy_per_byte=40e-12,
    )
    error = error_of(predict(chosen, [network], interfaces).time, chosen.time)
    assert error.rows == 4
    assert error.p90 < 0.02
