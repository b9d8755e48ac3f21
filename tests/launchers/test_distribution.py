"""Slurm's options for a mapping, against its rules written out task by task."""

import numpy as np
import pytest

from hopmap.launchers.distribution import slurm_distribution
from support import about

SHAPES = [(nodes, ranks) for nodes in range(1, 6) for ranks in range(nodes, 21)]


def layout(option, ranks, cpus, *, documented=False):
    """Node of each task, as slurm_step_layout.c lays them out; srun(1) says less of planes.

    srun(1): a node gets as many tasks of planes as cyclic gives it.
    """
    base, _, size = option.partition("=")
    nodes, tasks = range(len(cpus)), [0] * len(cpus)
    left = ranks
    if base in ("block", "block,NoPack", "cyclic") or documented:
        order, turn = [], 0
        while len(order) < ranks:
            order += [node for node in nodes if turn < cpus[node]]
            turn += 1
        order = order[:ranks]
        if base == "cyclic":
            return order
        if base != "plane":
            return sorted(order)
        tasks = [order.count(node) for node in nodes]
    elif base == "block,Pack":
        for node in nodes:
            tasks[node], left = 1, left - 1
        for node in nodes:
            more = min(cpus[node] - 1, left)
            tasks[node], left = tasks[node] + more, left - more
        return [node for node in nodes for _ in range(tasks[node])]
    else:
        for node in nodes:
            tasks[node], left = 1, left - 1
        cycle = 0
        while left:
            for node in nodes:
                for _ in range(cycle == 0, int(size)):
                    if left and tasks[node] < cpus[node]:
                        tasks[node], left = tasks[node] + 1, left - 1
            cycle += 1
    order = []
    while len(order) < ranks:
        for node in nodes:
            taken = min(int(size), tasks[node] - order.count(node))
            order += [node] * taken
    return order


def found(order, cpus, hosts=None):
    names = hosts or [f"n{node}" for node in range(len(cpus))]
    return slurm_distribution(np.array(order), np.array(cpus), names)


@pytest.mark.parametrize("option", ["block", "cyclic", *(f"plane={size}" for size in range(2, 7))])
def test_what_an_option_gives_is_recognised(option):
    """Planes only where srun(1) and Slurm's code agree: they differ in the last planes."""
    recognised = 0
    for nodes, ranks in SHAPES:
        cpus = [ranks] * nodes
        order = layout(option, ranks, cpus)
        sure = "plane" not in option or order == layout(option, ranks, cpus, documented=True)
        with about(option, nodes, ranks):
            answer = found(order, cpus)
            if sure and len(set(order)) == nodes:
                assert answer.option
                recognised += 1
    assert recognised > 10


def test_nodes_that_are_filled_up_are_recognised():
    """With --ntasks-per-node, and one task at least on each; unequal slots are a condition."""
    for nodes, ranks in SHAPES:
        for each in range(-(-ranks // nodes), ranks + 1):
            with about(nodes, ranks, each):
                assert found(layout("block,Pack", ranks, [each] * nodes), [ranks] * nodes).option
    order = layout("block,Pack", 9, [3, 2, 3, 3])
    assert order == [0, 0, 0, 1, 1, 2, 2, 2, 3]
    assert found(order, [4, 2, 4, 4]) == ("block,Pack", True)


def test_the_option_that_is_named_gives_the_mapping():
    """Of all small mappings, and of larger ones that an option or chance makes."""
    rng = np.random.default_rng(3)
    named = {"block": 0, "cyclic": 0, "plane": 0, "block,Pack": 0, "block,NoPack": 0, "": 0}
    orders = [
        [index // nodes**rank % nodes for rank in range(ranks)]
        for nodes in range(1, 4)
        for ranks in range(nodes, 7)
        for index in range(nodes**ranks)
    ]
    for nodes, ranks in SHAPES:
        most = rng.integers(1, 7, nodes)
        orders += [layout(f"plane={size}", ranks, [ranks] * nodes) for size in (2, 3, 4)]
        if nodes <= ranks <= most.sum():
            orders += [layout(way, ranks, most) for way in ("block", "cyclic", "block,Pack")]
        orders.append(np.sort(rng.integers(0, nodes, ranks)).tolist())
    for order in orders:
        used = max(order) + 1
        if len(set(order)) < used:
            continue
        each = max(map(order.count, order))
        answer = found(order, [each] * used)
        named[answer.option.partition("=")[0]] += 1
        with about(order, answer):
            if answer.option:  # --ntasks-per-node goes with Pack
                few = answer.as_slots or answer.option == "block,Pack"
                cpus = [each if few else len(order)] * used
                assert layout(answer.option, len(order), cpus) == order
                if "plane" in answer.option:
                    assert layout(answer.option, len(order), cpus, documented=True) == order
    assert min(named.values()) > 5, named


def test_nodes_of_unequal_slots_are_dealt_to_while_they_have_some():
    """srun(1): round-robin among all the nodes with CPUs yet to be assigned: a condition."""
    cpus = [4, 2, 4, 2]
    order = layout("cyclic", 12, cpus)
    assert order == [0, 1, 2, 3, 0, 1, 2, 3, 0, 2, 0, 2]
    answer = found(order, cpus)
    assert (answer.option, answer.as_slots) == ("cyclic", True)
    answer = found(sorted(order), cpus)
    assert (answer.option, answer.as_slots) == ("block,NoPack", True)
    assert found(order, [4] * 4).option == ""


def test_slurm_sorts_the_nodes():
    """n9 before n10, whatever their numbers in the network; a node without ranks is none."""
    assert found([1, 0, 1, 0], [2, 2], ["n10", "n9"]).option == "cyclic"
    assert found([0, 1, 0, 1], [2, 2], ["n10", "n9"]).option == ""
    assert found([0, 0, 2, 2], [2, 2, 2]).option == "block"


def test_many_ranks_take_no_time():
    nodes = 4096
    assert found(np.tile(np.arange(nodes), 64), [64] * nodes).option == "cyclic"
