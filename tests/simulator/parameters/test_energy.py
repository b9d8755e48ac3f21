"""Energy in closed form: bytes times joules, seconds times watts."""

from __future__ import annotations

import json

import pytest

from hopmap.simulator import ENGINES, ParameterError, Parameters, parameters_from, simulate
from hopmap.simulator import program_of as write
from hopmap.topologies import haec, mesh

EXACT = 1e-12
# Two hops on board and one between boards, node 0 to node 3 of board 0 and to node 7 above it.
PROGRAM = write(
    "three",
    [
        [("compute", 2e-6), ("send", 1, 1000), ("send", 2, 300)],
        [("recv", 0, 1000), ("compute", 4e-6)],
        [("recv", 0, 300)],
    ],
)
TOPOLOGY = haec((2, 2, 2))
NODES = [0, 3, 4]
OPTICAL, WIRELESS = (int((TOPOLOGY.link_kind == k).sum()) for k in range(2))


def energy(**figures):
    settings = {f"energy.{key.replace('__', '.')}": value for key, value in figures.items()}
    return simulate(PROGRAM, TOPOLOGY, NODES, parameters=parameters_from(settings))


def test_without_a_figure_there_is_none():
    result = simulate(PROGRAM, TOPOLOGY, NODES)
    assert result.energy is None
    assert result.to_dict()["energy"] is None


def test_links_cost_bytes_by_kind():
    moved = energy(link__optical__per_byte=2.0, link__wireless__per_byte=5.0).energy
    assert moved.transfer == {"optical": 2.0 * 2 * 1000, "wireless": 5.0 * 300}
    assert moved.total == 2.0 * 2000 + 5.0 * 300


def test_one_kind_of_link_wins_over_all():
    moved = energy(link__per_byte=1.0, link__wireless__per_byte=5.0).energy
    assert moved.transfer == {"optical": 2000.0, "wireless": 1500.0}


def test_links_draw_watts_as_long_as_the_run_lasts():
    result = energy(link__static=0.5, link__wireless__static=3.0)
    assert result.energy.static == pytest.approx(
        {
            "optical": 0.5 * OPTICAL * result.makespan,
            "wireless": 3.0 * WIRELESS * result.makespan,
        },
        rel=EXACT,
    )


def test_nodes_draw_watts_computing_and_idle():
    result = energy(node__compute=100.0, node__idle=10.0)
    assert result.energy.compute == pytest.approx(100.0 * 6e-6, rel=EXACT)
    assert result.energy.idle == pytest.approx(10.0 * (8 * result.makespan - 6e-6), rel=EXACT)


def test_ranks_of_one_node_stand_for_parts_of_it():
    program = write("pair", [[("compute", 1.0)], [("compute", 0.5)]])
    parameters = parameters_from({"energy.node.compute": 8.0, "energy.node.idle": 2.0})
    spent = simulate(program, mesh((1,), slots=2), [0, 0], parameters=parameters).energy
    assert (spent.compute, spent.idle) == (8.0 * 0.75, 2.0 * 0.25)


def test_energy_delay_product_is_total_times_makespan():
    result = energy(link__per_byte=1e-9, link__static=1.0, node__compute=90.0, node__idle=40.0)
    parts = result.energy
    total = sum(parts.transfer.values()) + sum(parts.static.values()) + parts.compute + parts.idle
    assert parts.total == pytest.approx(total, rel=EXACT)
    assert parts.delay_product == parts.total * result.makespan
    summary = result.to_dict()["energy"]
    assert summary["total"] == parts.total
    assert set(summary["links"]) == {"optical", "wireless"}
    assert json.loads(json.dumps(summary)) == summary


@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_moves_the_same_bytes(engine):
    parameters = parameters_from({"energy.link.per_byte": 1.0})
    spent = simulate(PROGRAM, TOPOLOGY, NODES, parameters=parameters, engine=engine).energy
    assert spent.total == 2300.0


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("energy.node.idle", -1, "energy.node.idle -1: expected at least 0 W"),
        ("energy.link.optical.per_byte", -1, "energy.link.optical.per_byte -1: expected at least"),
        ("energy.link.optical.colour", 1, "unknown parameter 'energy.link.optical.colour'"),
    ],
)
def test_figures_are_checked(key, value, expected):
    with pytest.raises(ParameterError) as error:
        parameters_from({key: value})
    assert str(error.value).startswith(expected)
    with pytest.raises(ParameterError):
        Parameters(energy={key.removeprefix("energy."): value})
