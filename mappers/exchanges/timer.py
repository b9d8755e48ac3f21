"""TiMEr: label swaps along many random hierarchies, on networks that are partial cubes.

Source: Glantz, Predari and Meyerhenke, Topology-induced enhancement of mappings (ICPP 2018). The
label of a rank is its node's (`topologies.partial_cube`), extended so that no two are equal.
Coco, which is the hop-bytes, is the weighted Hamming distance of the first part, Div that of the
second, and Coco+ = Coco - Div is minimised. A permutation of the digits makes a hierarchy: on each
level labels that differ in the last digit alone are swapped if that gains, and their owners are
contracted; from the digits of all levels new labels are assembled, and kept if Coco+ is no larger.

Which ranks share a node changes, how many does not: labels only change owners. With free_slots the
free slots take part as ranks without traffic, and then the numbers change as well.

Where the print is unclear:

- Algorithm 2 gives a digit if some label ends in it and the digits before. So printed, ranks can
  get the same label, and nodes more ranks than they had: up to 84 where blocks have 38 to 45. Here
  ranks go to the nodes of the labels so printed, and from those that get too many, newcomers go
  back to where they were: first those whose preferred label does not exist, by number. Who is where
  his preferred label is has it; the others keep their old one or take one that is free.
- It runs to level dim, of which Algorithm 1 has dim - 1: read `while i < dim - 1`. `newParentLabel`
  in line 9 is its last digit, and the most significant digit is the one from before.
- The loop of Algorithm 1 swaps on levels 1 to dim - 2: the two most significant digits of a
  hierarchy stay. So a network of two digits (4 nodes) is left as it is.
- "The entries are shuffled" (section 4): the same way on all nodes, which the permutation of each
  hierarchy does anyway. Shuffled on each node separately, nodes that are not full share few
  extensions, many preferred labels do not exist, and less is gained or nothing.
- The mapping that is returned is the one with the least Coco of all that were kept, the start among
  them: Coco+ alone may trade Coco for Div.

A mapping that loses more, as a share, between nodes than it gains in Coco is warned of: the swaps
trade distance for cut, which the paper reports as well.

In hierarchies (`tree:S@D`) a digit counts with the cost of its link, so that Coco is J.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from hopmap.arrays import Ints, Words, equals_before
from hopmap.errors import HopmapWarning
from hopmap.mappers.cost_model import CostModel
from hopmap.mappers.mapper import mapper
from hopmap.mappers.objectives import cost_model, get_objective, with_free_slots
from hopmap.mappers.options import Count
from hopmap.mappers.stop import Stop, keep
from hopmap.topologies import Mapping, MappingError, Topology, TopologyError
from hopmap.traces import Traffic

if TYPE_CHECKING:
    from hopmap.topologies import PartialCube

LARGEST = 2**31  # digits of all labels together, 256 MiB


class Labels(NamedTuple):
    """The labels in use; which rank has which is kept apart."""

    # shape (labels, words): digit j is bit j % 64 of word j // 64: first the digits of the node,
    # then the extension
    bits: Words
    inner: int  # digits of the node
    # shape (digits,): cost of a digit that differs, in units of 1 / scale; negative in the
    # extension
    price: Ints
    node: Ints  # shape (labels,): node of each label


def cube_of(name: str, traffic: Traffic, topology: Topology) -> PartialCube:  # noqa: ARG001
    """Raise `MappingError` unless the network is a partial cube; return its labels."""
    from hopmap.topologies import partial_cube

    try:
        return partial_cube(topology)
    except TopologyError as error:
        raise MappingError(f"mapper {name}: {error}") from None


@mapper("timer", source="Glantz, Predari, Meyerhenke 2018", needs=cube_of)
def timer(
    traffic: Traffic,
    topology: Topology,
    *,
    rng: np.random.Generator,
    initial: Mapping,
    hierarchies: Count = 50,
    free_slots: bool = False,
    objective: Literal["hop_bytes", "hop_messages"] = "hop_bytes",
    stop: Stop,
) -> Mapping:
    """Label swaps on every level of random hierarchies of a partial cube (TiMEr).

    O(hierarchies * digits * pairs).

    - `hierarchies`: N_H.
    - `free_slots`: whether ranks may go to free slots; else every node keeps its number of ranks.
    - `objective`: weights of Coco.
    """
    from .timer_kernels import swap_labels, values

    cube = cube_of("timer", traffic, topology)
    node_of = with_free_slots(initial, topology) if free_slots else initial
    labels, label_of = extend_labels(cube, node_of)
    model = cost_model(traffic, topology, objective, few=True)
    indptr, peer, weight = model.indptr[: len(node_of) + 1], model.peer, model.weight

    def evaluate(owned: Ints) -> tuple[int, int]:
        return values(indptr, peer, weight, labels.bits, labels.price, labels.inner, owned)

    watch = stop.watch()
    best = began = label_of
    least, plus = evaluate(label_of)
    coco = least
    name = get_objective(objective).name
    with keep(lambda: labels.node[best][: traffic.ranks]):
        for done in range(hierarchies):
            watch.report(done, hierarchies, f"{name} {least // cube.scale}")
            if watch.over():
                break
            digits = rng.permutation(len(labels.price))
            swapped_labels = swap_labels(
                indptr, peer, weight, labels.bits, labels.node, labels.price, label_of, digits
            )
            now, value = evaluate(swapped_labels)
            if value <= plus:
                label_of, plus = swapped_labels, value
                if now < least:
                    best, least = swapped_labels, now
    _warn_of_cut(model, labels.node[began], labels.node[best], coco, least)
    return labels.node[best][: traffic.ranks]


def _warn_of_cut(model: CostModel, before: Ints, after: Ints, coco: int, least: int) -> None:
    """Warn where the weight between nodes has grown by a larger share than Coco has fallen by."""
    row = np.repeat(np.arange(len(model.indptr) - 1), np.diff(model.indptr))
    cut, grown = (int(model.weight[at[row] != at[model.peer]].sum()) for at in (before, after))
    if grown > cut and grown * coco > cut * (2 * coco - least):
        warnings.warn(
            f"mapper timer: Coco fell by {1 - least / coco:.1%}, but what crosses between nodes "
            f"grew by {grown / max(cut, 1) - 1:.1%}",
            HopmapWarning,
            stacklevel=3,
        )


def extend_labels(cube: PartialCube, node_of: Ints) -> tuple[Labels, Ints]:
    """Labels of the nodes in use, extended by numbers of ranks; and the label of each rank."""
    ranks = len(node_of)
    sizes = np.bincount(node_of, minlength=len(cube.labels))
    extra = int(sizes.max(initial=1) - 1).bit_length()
    dimension = cube.dimension + extra
    if ranks * dimension > LARGEST:
        raise MappingError(
            f"mapper timer: labels of {ranks} ranks take {dimension} digits each: expected at most "
            f"{LARGEST} in all"
        )
    number = equals_before(node_of)
    bits = np.zeros((ranks, max(1, -(-dimension // 64))), dtype=np.uint64)
    bits[:, : cube.labels.shape[1]] = cube.labels[node_of]
    for e in range(extra):
        j = cube.dimension + e
        value = number >> e & 1
        bits[:, j // 64] |= value.astype(np.uint64) << np.uint64(j % 64)
    price = np.concatenate((cube.price, np.full(extra, -cube.scale)))
    return Labels(bits, cube.dimension, price, node_of), np.arange(ranks)
