"""The HAEC thesis' mappers as its authors ran them, `preset=thesis`: its Table A.1."""

import csv

import pytest

from hopmap.mappers import MAPPERS, map_ranks, objective_value, parse_pipeline
from hopmap.simulator.metrics.metrics import evaluate
from hopmap.topologies import MappingError, topology_from_spec
from hopmap.traces import Traffic, nas_traffic
from support import ROOT

CURVES = ("sweep", "scan", "peano", "gray", "hilbert")
SEARCHES = ("bokhari", "minmd", "genetic", "random_sampling")
with (ROOT / "scenarios" / "tables" / "haec_thesis_lu_c_64.csv").open() as stream:
    ROWS = list(csv.DictReader(stream))


def published_row(row: dict[str, str]) -> list[int]:
    return [int(row[f"ienpc_{part}"]) for part in ("total", "avg", "min", "max")]


@pytest.mark.parametrize(
    "row",
    [row for row in ROWS if row["mapper"] not in ("genetic", "random_sampling")],
    ids=lambda row: f"{row['topology']}-{row['mapper']}",
)
def test_all_but_the_random_rows_of_table_a1_come_out_to_the_last_digit(row):
    traffic, topology = nas_traffic("lu.C.64"), topology_from_spec(f"{row['topology']}:4x4x4")
    node_of = map_ranks(traffic, topology, f"{row['mapper']}(preset=thesis)")
    ienpc = evaluate(traffic, topology, node_of, "maplib").messages.ienpc
    assert [ienpc.total, ienpc.avg, ienpc.min, ienpc.max] == published_row(row)


def test_the_table_has_nine_mappers_on_three_networks():
    assert {(row["topology"], row["mapper"]) for row in ROWS} == {
        (family, name) for family in ("mesh", "torus", "haec") for name in (*CURVES, *SEARCHES)
    }


@pytest.mark.parametrize("family", ["mesh", "torus", "haec"])
@pytest.mark.parametrize("name", ["genetic", "random_sampling"])
def test_the_random_rows_lie_where_ours_do(compiled, family, name):
    """Five seeds: the published total is between the least and the most, or 7 % beyond."""
    (row,) = (r for r in ROWS if (r["topology"], r["mapper"]) == (family, name))
    traffic, topology = nas_traffic("lu.C.64"), topology_from_spec(f"{family}:4x4x4")
    totals = []
    for seed in range(5):
        node_of = map_ranks(traffic, topology, f"{name}(preset=thesis)", seed=seed)
        totals.append(evaluate(traffic, topology, node_of, "maplib").messages.ienpc.total)
    assert 0.93 * min(totals) <= published_row(row)[0] <= 1.07 * max(totals)


def test_a_preset_is_written_out_and_what_is_said_besides_wins():
    (stage,) = parse_pipeline("bokhari(preset=thesis, jumps=8)")
    assert stage.parameters == MAPPERS["bokhari"].presets["thesis"] | {"jumps": 8}
    assert str(parse_pipeline("minmd(preset=thesis)")[0]) == "minmd(weight=messages, order=maplib)"
    assert str(parse_pipeline("sweep(preset=thesis)")[0]) == "sweep"
    for name in (*CURVES, *SEARCHES):
        info = MAPPERS[name]
        for key, value in info.presets["thesis"].items():
            assert info.check(key, value) == value


def test_an_unknown_preset_is_refused_and_so_is_one_of_a_mapper_without():
    with pytest.raises(MappingError, match=r"mapper bokhari: preset=thesi \(did you mean thesis"):
        parse_pipeline("bokhari(preset=thesi)")
    with pytest.raises(MappingError, match="unknown parameter 'preset'"):
        parse_pipeline("kl(preset=thesis)")


def test_by_bytes_minmd_is_worse_on_the_torus_than_by_messages():
    """Of the printed Algorithm 2 (benchmarks/reproduction): 15.60 and 14.23 million messages."""
    traffic, topology = nas_traffic("lu.C.64"), topology_from_spec("torus:4x4x4")
    million = [
        objective_value(
            traffic, topology, map_ranks(traffic, topology, f"minmd(weight={weight})"),
            "hop_messages",
        )
        / 1e6
        for weight in ("bytes", "messages")
    ]  # fmt: skip
    assert [round(value, 2) for value in million] == [15.60, 14.23]


def test_the_start_of_bokharis_preset_runs_through_columns():
    """x counts most, then y, then z: what it returns when there is no time to improve it."""
    for spec in ("mesh:2x3x2", "torus:3x3"):
        box = topology_from_spec(spec)
        full = Traffic.from_pairs(box.nodes, [], [], [], [])
        made = map_ranks(full, box, "bokhari(start=columns, rounds=1, seconds=0)")
        by_columns = sorted(range(box.nodes), key=lambda node: box.coords[node].tolist())
        assert made.tolist() == by_columns


def test_a_jump_has_as_many_exchanges_as_the_longest_side_has_nodes():
    traffic, topology = nas_traffic("lu.S.16"), topology_from_spec("mesh:2x8")
    assert (
        map_ranks(traffic, topology, "bokhari(jumps=side, rounds=9)").tolist()
        == map_ranks(traffic, topology, "bokhari(jumps=8, rounds=9)").tolist()
        != map_ranks(traffic, topology, "bokhari(jumps=4, rounds=9)").tolist()
    )


@pytest.mark.parametrize("option", ["jumps=side", "start=columns"])
def test_what_the_thesis_needs_a_box_for_is_refused_elsewhere(option):
    with pytest.raises(MappingError, match=f"{option}.*: expected a mesh, a torus or a HAEC Box"):
        map_ranks(nas_traffic("lu.S.4"), topology_from_spec("fattree:2x2"), f"bokhari({option})")
