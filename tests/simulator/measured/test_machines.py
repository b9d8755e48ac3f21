"""Measured on Leonardo, LUMI and MareNostrum 5: every row is known or listed, orders are found."""

from __future__ import annotations

import numpy as np
import pytest

import hopmap as hm
from hopmap.simulator.measured.errors import LARGE, error_of, order_of
from hopmap.simulator.measured.files import read_measured
from hopmap.simulator.measured.names import lookup
from hopmap.simulator.measured.prediction import CHANGED, NOTHING, ON_GPU, not_simulated

# The library's own choice, two versions under one name, and one of MPICH's that is not built.
LISTED = {
    "default_ompi", "default_mpich", "non_blocking_mpich", "bine_bdw_remap_segmented_over",
    "recursive_doubling_mpich",
}  # fmt: skip
# Rules of thumb, not fitted: what a ping-pong and a memory copy take on such nodes.
USUAL = {
    "overhead.send": 1e-6,
    "overhead.recv": 1e-6,
    "collective.copy_per_byte": 4e-11,
    "collective.reduce_per_byte": 8e-11,
}


@pytest.fixture(scope="module")
def jobs(shared):
    """Folders of jobs by machine."""
    folder = shared / "measured"
    machines = ("leonardo", "lumi", "mare_nostrum")
    found = {machine: sorted((folder / machine).glob("*/times.csv")) for machine in machines}
    if not all(found.values()):
        pytest.skip("no measured times of Leonardo, LUMI and MareNostrum beside the repository")
    return found


@pytest.fixture(scope="module")
def shared(request):
    """As in conftest.py, for the fixture above."""
    from support import ROOT

    if not (ROOT.parent / "shared").is_dir():
        pytest.skip("no folder 'shared' beside the repository, which holds the measured times")
    return ROOT.parent / "shared"


def test_every_row_is_simulated_or_says_why_not(jobs):
    network = hm.topology("cluster:1")  # all files say on how many nodes their calls are
    for machine, files in jobs.items():
        table = read_measured(files)
        rows = zip(table.collective, table.algorithm, strict=True)
        for k, (collective, algorithm) in enumerate(rows):
            why = not_simulated(table, k, lookup(collective, algorithm), network)
            if why not in ("", ON_GPU, CHANGED, NOTHING):
                assert algorithm in LISTED, (machine, collective)


def test_hosts_of_every_job_are_nodes_of_the_machine(jobs, shared):
    nodes = shared / "measured" / "jobs" / "leonardo_nodes.txt"
    machines = {
        "leonardo": f"file:{nodes}",
        "lumi": "preset:lumi-g",
        "mare_nostrum": "preset:marenostrum5",
    }
    for machine, files in jobs.items():
        for times in files:
            hosts = next(times.parent.glob("alloc*.csv"))
            job = hm.topology(f"job:{hosts}@{machines[machine]}")
            assert len(job.order) >= read_measured([times]).nodes.max()


def test_large_broadcasts_on_marenostrum_are_predicted_without_a_fit(jobs):
    """Whole buffers to several children at once share the sender's interface evenly."""
    times = next(path for path in jobs["mare_nostrum"] if "14_07_21" in str(path))
    found = hm.validate(
        times, "preset:marenostrum5", alloc=times.parent / "alloc.csv", settings=USUAL
    )
    table, predicted = found.measured, found.prediction
    trees = np.array([a in TREES for a in table.algorithm])
    chosen = (np.array(table.collective) == "bcast") & trees & (table.size == 64 << 20)
    assert chosen.sum() == len(TREES)
    assert error_of(predicted.time[chosen], table.time[chosen]).p90 < 0.02
    order = order_of(table, predicted)
    assert order.cells >= 15
    assert order.tau > 0.6
    assert error_of(predicted.time[table.size >= LARGE], table.time[table.size >= LARGE]).rows > 100


TREES = (
    "binomial_ompi", "knomial_ompi", "bine_lat_over", "bine_lat_i_new_over",
    "bine_lat_reversed_over", "bine_lat_new_over",
)  # fmt: skip


def test_an_order_on_lumi_is_found_as_well_as_by_another_job(jobs):
    """Two jobs of 8 nodes agree on the order of allreduces at 1 MiB and above with tau 0.69."""
    one, two = (path for path in jobs["lumi"] if "2025_04_07" in str(path))
    measured = [read_measured([path]) for path in (one, two)]
    taus = []
    for path in (one, two):
        found = hm.validate(path, "preset:lumi-g", alloc=path.parent / "alloc.csv", settings=USUAL)
        taus.append(order_of(found.measured, found.prediction).tau)
    assert min(taus) > 0.5
    assert set(measured[0].algorithm) <= set(measured[1].algorithm)
