"""Compiled label swaps along one hierarchy, contraction and assembly: TiMEr's Algorithms 1 and 2.

Labels do not change, only who has which: label l has the digits ``bits[l]``, digit j being bit
j % 64 of word j // 64, and vertex v the label ``label_of[v]``. A hierarchy is a permutation of the
digits, `digits`, least significant first. Sorted by it, the labels that agree on all but the i - 1
least significant digits are neighbours, so that a vertex of level i is a range of positions.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hopmap.arrays import Bools, Ints, Words
from hopmap.compilation import njit, subroutine
from hopmap.mappers.basic_kernels import Graph, contract, group_by_block, subgraph


@subroutine
def digit(bits: Words, row: int, j: int) -> int:
    """Digit j of a row."""
    return int((bits[row, j >> 6] >> np.uint64(j & 63)) & np.uint64(1))


@subroutine
def sort_labels(bits: Words, digits: Ints) -> Ints:
    """Labels in ascending order, the last of the digits being the most significant; radix sort."""
    order = np.arange(len(bits))
    other = np.empty_like(order)
    for j in digits:
        at = 0
        for value in (0, 1):
            for k in range(len(order)):
                if digit(bits, order[k], j) == value:
                    other[at] = order[k]
                    at += 1
        order, other = other, order
    return order


@subroutine
def tops(bits: Words, order: Ints, digits: Ints) -> Ints:
    """Most significant digit, counted from 1, in which each label differs from the one before."""
    top = np.empty(len(order), dtype=np.int64)
    top[0] = len(digits) + 1
    for k in range(1, len(order)):
        i = len(digits)
        while digit(bits, order[k], digits[i - 1]) == digit(bits, order[k - 1], digits[i - 1]):
            i -= 1
        top[k] = i
    return top


@njit
def values(
    indptr: Ints, peer: Ints, weight: Ints, bits: Words, price: Ints, inner: int, label_of: Ints
) -> tuple[int, int]:
    """Coco and Coco+: weights times the prices of differing digits, below `inner` and of all.

    The digits from `inner` on are the extension's, of negative price: Coco+ = Coco - Div.
    """
    coco = div = 0
    for v in range(len(label_of)):
        for e in range(indptr[v], indptr[v + 1]):
            if peer[e] < v:
                for word in range(bits.shape[1]):
                    left = bits[label_of[v], word] ^ bits[label_of[peer[e]], word]
                    j = word << 6
                    while left != np.uint64(0):
                        if left & np.uint64(1):
                            if j < inner:
                                coco += weight[e] * price[j]
                            else:
                                div -= weight[e] * price[j]
                        left >>= np.uint64(1)
                        j += 1
    return coco, coco - div


@njit
def swap_labels(
    indptr: Ints,
    peer: Ints,
    weight: Ints,
    bits: Words,
    node: Ints,
    price: Ints,
    label_of: Ints,
    digits: Ints,
) -> Ints:
    """Labels of the vertices after one hierarchy: lines 8 to 15 of Algorithm 1.

    `indptr`, `peer` and `weight` are the application graph, both directions of every edge. The
    labels `bits`, shape (labels, words), are all different and as many as vertices; `node` holds
    their nodes, `price` what a unit of weight costs where a digit differs, and `label_of` the label
    of each vertex. `digits` is the hierarchy.
    """
    vertices = len(label_of)
    order = sort_labels(bits, digits)
    top = tops(bits, order, digits)
    wanted = np.empty_like(bits)
    vertex_with = np.empty_like(label_of)
    for v in range(vertices):
        wanted[v] = bits[label_of[v]]
        vertex_with[label_of[v]] = v
    at = vertex_with[order]
    indptr, peer, weight = subgraph(Graph(indptr, peer, weight), at, np.full(vertices, -1))
    first = np.arange(vertices + 1)  # first position of each vertex of the level
    merges = np.bincount(top, minlength=len(digits) + 2)
    for i in range(1, len(digits)):
        if merges[i] == 0:
            continue  # no two labels differ in this digit alone: nothing to swap or contract
        if i < len(digits) - 1:
            j = digits[i - 1]
            value = np.empty(len(first) - 1, dtype=np.int64)
            for u in range(len(value)):
                value[u] = digit(bits, order[first[u]], j)
            for u in range(len(value) - 1):
                if top[first[u + 1]] != i:
                    continue
                if price[j] * _decrease(indptr, peer, weight, value, u) > 0:
                    value[u], value[u + 1] = value[u + 1], value[u]
                    for k in range(first[u], first[u + 2]):
                        wanted[at[k], j >> 6] ^= np.uint64(1) << np.uint64(j & 63)
            indptr, peer, weight, first = merge(indptr, peer, weight, first, top, i)
    return assemble(bits, node, wanted, label_of, digits)


@subroutine
def _decrease(indptr: Ints, peer: Ints, weight: Ints, value: Ints, u: int) -> int:
    """Weight that differs in the digit less if u and u + 1, which differ in it, swap labels.

    The edge between the two differs before and after.
    """
    less = 0
    for a, b in ((u, u + 1), (u + 1, u)):
        for e in range(indptr[a], indptr[a + 1]):
            if peer[e] != b:
                less += weight[e] if value[peer[e]] != value[a] else -weight[e]
    return less


@subroutine
def merge(
    indptr: Ints, peer: Ints, weight: Ints, first: Ints, top: Ints, i: int
) -> tuple[Ints, Ints, Ints, Ints]:
    """Graph of the next level: vertices whose labels differ in digit i alone become one."""
    fine = len(first) - 1
    coarse: Any = np.int64(0)  # of one type, or `contract` is compiled twice
    parent, above = np.empty(fine, dtype=np.int64), np.empty(fine + 1, dtype=np.int64)
    for u in range(fine):
        if top[first[u]] > i:
            above[coarse] = first[u]
            coarse += 1
        parent[u] = coarse - 1
    above[coarse] = first[fine]
    rows, peers, weights = contract(Graph(indptr, peer, weight), parent, coarse)
    return rows, peers, weights, above[: coarse + 1]


@subroutine
def label_as_printed(bits: Words, wanted: Words, digits: Ints) -> Ints:
    """Algorithm 2 as printed: the label of each vertex, which several may get.

    From the least significant digit on the one that is preferred if some label has it and the
    digits before, and else the other one. So a label that is wanted and exists is the one.
    """
    order = sort_labels(bits, digits[::-1].copy())
    label_of = np.empty(len(wanted), dtype=np.int64)
    for v in range(len(wanted)):
        low, high = 0, len(order)  # those that have the digits so far
        for j in digits:
            middle, end = low, high
            while middle < end:
                k = (middle + end) // 2
                if digit(bits, order[k], j) == 0:
                    middle = k + 1
                else:
                    end = k
            if middle == high or (digit(wanted, v, j) == 0 and middle > low):
                high = middle
            else:
                low = middle
        label_of[v] = order[low]
    return label_of


@subroutine
def send_back(old: Ints, new: Ints, first: Bools, room: Ints) -> Ints:
    """Nodes of the vertices when from full nodes newcomers are back on their old ones.

    `old` are the nodes before, which are full, `new` those that were chosen, and `room` the
    vertices of each node. Vertices with `first` go back first; equals by number. In which order
    nodes are looked at does not matter.
    """
    at = new.copy()
    load = np.zeros_like(room)
    rows = np.zeros(len(room) + 1, dtype=np.int64)
    for v in range(len(at)):
        load[at[v]] += 1
        if at[v] != old[v]:
            rows[at[v] + 1] += 1
    rows = np.cumsum(rows)
    fill = rows[:-1].copy()
    newcomer = np.empty(rows[-1], dtype=np.int64)
    for early in (True, False):
        for v in range(len(at)):
            if at[v] != old[v] and first[v] == early:
                newcomer[fill[at[v]]] = v
                fill[at[v]] += 1
    following = rows[:-1].copy()
    crowded = list(np.flatnonzero(load > room))
    while len(crowded) > 0:
        p = crowded.pop()
        while load[p] > room[p]:
            v = newcomer[following[p]]
            following[p] += 1
            at[v] = old[v]
            load[p] -= 1
            load[old[v]] += 1
            crowded.append(old[v])
    return at


@subroutine
def assemble(bits: Words, node: Ints, wanted: Words, held: Ints, digits: Ints) -> Ints:
    """Give every vertex a label of its own: Algorithm 2, and no node gets more than it has labels.

    Every vertex goes to the node of its `label_as_printed` or stays on its own. Who has the
    label that it wants keeps it, then whose old label is left; the rest get what is left.

    The labels `bits`, shape (labels, words), are all different, on `node`, and as many as vertices.
    `wanted`, shape (vertices, words), are the digits that the vertices prefer, no two the same,
    `held` their old labels, and `digits` the hierarchy.
    """
    vertices = len(held)
    goal = label_as_printed(bits, wanted, digits)
    exact = np.empty(vertices, dtype=np.bool_)
    for v in range(vertices):
        exact[v] = (bits[goal[v]] == wanted[v]).all()
    room = np.bincount(node)
    at = send_back(node[held], node[goal], ~exact, room)
    label_of = np.full(vertices, -1)
    taken = np.zeros(vertices, dtype=np.bool_)
    for v in range(vertices):
        if exact[v] and at[v] == node[goal[v]]:
            label_of[v] = goal[v]
            taken[goal[v]] = True
    for v in range(vertices):
        if label_of[v] < 0 and at[v] == node[held[v]] and not taken[held[v]]:
            label_of[v] = held[v]
            taken[held[v]] = True
    following, by_node = group_by_block(node, len(room))
    for v in range(vertices):
        if label_of[v] < 0:
            p = at[v]
            while taken[by_node[following[p]]]:
                following[p] += 1
            label_of[v] = by_node[following[p]]
            following[p] += 1
    return label_of
