"""Model creation from the command line: blocks, their traffic, and a mapping to begin with."""

import numpy as np
import pytest

from hopmap.launchers.mapping_files import read_mapping
from hopmap.mappers import objective_value
from hopmap.topologies import topology_from_spec
from hopmap.traces import load_traffic, stencil_traffic
from support.commands import as_json, hopmap, invoke, noted

GRAPH = "stencil:24x24,5pt"


@pytest.mark.parametrize(("way", "most"), [("rms", 48), ("rb", 50)])
def test_the_traffic_is_what_the_blocks_cut(tmp_path, way, most):
    out, blocks = tmp_path / "model.npz", tmp_path / "blocks.csv"
    words = ("--nodes", "2:2:3", "--by", way, "--out", out, "--blocks", blocks)
    facts = as_json("coarsen", GRAPH, *words)
    assert (facts["blocks"], facts["vertices"], facts["mean"]) == (12, 576, 48)
    assert facts["largest"] <= most
    block = read_mapping(blocks, topology_from_spec(f"tree:2:2:3*{facts['largest']}"), 576)
    graph, model = stencil_traffic((24, 24), "5pt"), load_traffic(out)
    between = np.zeros((12, 12), dtype=int)
    np.add.at(between, (block[graph.src], block[graph.dst]), graph.bytes)
    np.fill_diagonal(between, 0)
    found = np.zeros_like(between)
    found[model.src, model.dst] = model.bytes
    assert np.array_equal(found + found.T, between + between.T)
    assert facts["cut"] == between.sum()


def test_a_block_is_a_node_to_start_from(tmp_path):
    """Consecutive blocks of a multisection fill a subsystem: hop-bytes of the identity."""
    out, blocks = tmp_path / "model.npz", tmp_path / "blocks.csv"
    facts = as_json("coarsen", GRAPH, "--nodes", "4:3", "--out", out, "--blocks", blocks)
    machine = topology_from_spec("tree:4:3")
    costs = as_json("evaluate", GRAPH, blocks, "-t", f"tree:4:3*{facts['largest']}")
    identity = objective_value(load_traffic(out), machine, np.arange(12), "hop_bytes")
    assert costs["bytes"]["dilation"]["sum"] == identity


def test_slack_is_shared_by_the_levels_and_said_where_it_is_not_kept(tmp_path):
    out = tmp_path / "model.npz"
    facts = as_json("coarsen", GRAPH, "--nodes", "4:3", "--epsilon", "0.1", "--out", out)
    assert 48 < facts["largest"] <= 48 * 1.1**2
    words = ("--nodes", 300, "--by", "rb", "--out", out, "--force")
    (said,) = noted("coarsen", "stencil:64x64,5pt", *words)
    assert "of 300 blocks exceed 1.03 times the mean: KaHIP exceeds it for small blocks" in said


@pytest.mark.parametrize(
    ("nodes", "why"),
    [
        ("4x4", "--nodes 4x4: expected a number like 512, or S like 4:16:8"),
        ("600", "model of 600 ranks: a graph of 576 vertices: expected as many or more"),
    ],
)
def test_what_cannot_be_cut_is_refused(tmp_path, nodes, why):
    words = ["coarsen", GRAPH, "--nodes", nodes, "--out", str(tmp_path / "m.npz")]
    result = invoke(words)
    assert result.exit_code == 2
    assert why in result.stderr
    assert not list(tmp_path.iterdir())


def test_the_same_seed_cuts_the_same(tmp_path):
    made = []
    for name in "ab":
        out = tmp_path / f"{name}.npz"
        hopmap("coarsen", GRAPH, "--nodes", 12, "--by", "rb", "--seed", 3, "--out", out)
        made.append(load_traffic(out))
    assert made[0].same_as(made[1])
