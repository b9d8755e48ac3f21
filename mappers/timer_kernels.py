"""Compiled label swaps along one hierarchy, contraction and assembly: TiMEr's Algorithms 1 and 2.

Labels do not change, only who has which: label l has the digits ``bits[l]``, digit j being bit
j % 64 of word j // 64, and vertex v the label ``label_of[v]``. A hierarchy is a permutation of the
digits, `digits`, least significant first. Sorted by it, the labels that agree on all but the i - 1
least significant digits are neighbours, so that a vertex of level i is a range of positions.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray


@njit(cache=True)
def digit(bits: NDArray[np.uint64], row: int, j: int) -> int:
    """Digit j of a row."""
    return int((bits[row, j >> 6] >> np.uint64(j & 63)) & np.uint64(1))


@njit(cache=True)
def ordered(bits: NDArray[np.uint64], digits: NDArray[np.int64]) -> NDArray[np.int64]:
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


@njit(cache=True)
def tops(
    bits: NDArray[np.uint64], order: NDArray[np.int64], digits: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Most significant digit, counted from 1, in which each label differs from the one before."""
    top = np.empty(len(order), dtype=np.int64)
    top[0] = len(digits) + 1
    for k in range(1, len(order)):
        i = len(digits)
        while digit(bits, order[k], digits[i - 1]) == digit(bits, order[k - 1], digits[i - 1]):
            i -= 1
        top[k] = i
    return top


@njit(cache=True)
def values(
    indptr: NDArray[np.int64],
    peer: NDArray[np.int64],
    weight: NDArray[np.int64],
    bits: NDArray[np.uint64],
    price: NDArray[np.int64],
    inner: int,
    label_of: NDArray[np.int64],
) -> tuple[int, int]:
    """Coco and Coco+: weights times the prices of differing digits, below `inner` and of all.

    The digits from `inner` on are those of the extension, of negative price: Coco+ = Coco - Div.
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


@njit(cache=True)
def swapped(
    indptr: NDArray[np.int64],
    peer: NDArray[np.int64],
    weight: NDArray[np.int64],
    bits: NDArray[np.uint64],
    price: NDArray[np.int64],
    label_of: NDArray[np.int64],
    digits: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Labels of the vertices after one hierarchy: lines 8 to 15 of Algorithm 1.

    Parameters
    ----------
    indptr, peer, weight : ndarray(int64)
        The application graph, both directions of every edge.
    bits : ndarray(uint64, shape=(labels, words))
        The labels, all different, as many as vertices; sorted by their words.
    price : ndarray(int64, shape=(digits,))
        What a unit of weight costs where the digit differs.
    label_of : ndarray(int64, shape=(vertices,))
        Label of each vertex.
    digits : ndarray(int64, shape=(digits,))
        The hierarchy.
    """
    vertices = len(label_of)
    order = ordered(bits, digits)
    top = tops(bits, order, digits)
    wanted = np.empty_like(bits)
    vertex_with = np.empty_like(label_of)
    for v in range(vertices):
        wanted[v] = bits[label_of[v]]
        vertex_with[label_of[v]] = v
    at = vertex_with[order]
    position = np.empty_like(at)
    position[at] = np.arange(vertices)
    indptr, peer, weight = _renumbered(indptr, peer, weight, at, position)
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
            indptr, peer, weight, first = contract(indptr, peer, weight, first, top, i)
    return assemble(bits, wanted, label_of, digits)


@njit(cache=True)
def _renumbered(
    indptr: NDArray[np.int64],
    peer: NDArray[np.int64],
    weight: NDArray[np.int64],
    at: NDArray[np.int64],
    position: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Graph with the vertices numbered by their positions."""
    rows = np.zeros(len(at) + 1, dtype=np.int64)
    peers, weights = np.empty_like(peer), np.empty_like(weight)
    count = 0
    for k in range(len(at)):
        for e in range(indptr[at[k]], indptr[at[k] + 1]):
            peers[count] = position[peer[e]]
            weights[count] = weight[e]
            count += 1
        rows[k + 1] = count
    return rows, peers, weights


@njit(cache=True)
def _decrease(
    indptr: NDArray[np.int64],
    peer: NDArray[np.int64],
    weight: NDArray[np.int64],
    value: NDArray[np.int64],
    u: int,
) -> int:
    """Weight that differs in the digit less if u and u + 1, which differ in it, swap labels.

    The edge between the two differs before and after.
    """
    less = 0
    for a, b in ((u, u + 1), (u + 1, u)):
        for e in range(indptr[a], indptr[a + 1]):
            if peer[e] != b:
                less += weight[e] if value[peer[e]] != value[a] else -weight[e]
    return less


@njit(cache=True)
def contract(
    indptr: NDArray[np.int64],
    peer: NDArray[np.int64],
    weight: NDArray[np.int64],
    first: NDArray[np.int64],
    top: NDArray[np.int64],
    i: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Graph of the next level: vertices whose labels differ in digit i alone become one."""
    fine = len(first) - 1
    parent = np.empty(fine, dtype=np.int64)
    coarse = -1
    for u in range(fine):
        if top[first[u]] > i:
            coarse += 1
        parent[u] = coarse
    above = np.empty(coarse + 2, dtype=np.int64)
    rows = np.zeros(coarse + 2, dtype=np.int64)
    entry = np.full(coarse + 1, -1)
    peers, weights = np.empty_like(peer), np.empty_like(weight)
    count = start = 0
    for u in range(fine):
        own = parent[u]
        if u == 0 or own != parent[u - 1]:
            above[own] = first[u]
            start = count
        for e in range(indptr[u], indptr[u + 1]):
            other = parent[peer[e]]
            if other == own:
                continue
            if entry[other] < start:
                entry[other] = count
                peers[count] = other
                weights[count] = 0
                count += 1
            weights[entry[other]] += weight[e]
        rows[own + 1] = count
    above[coarse + 1] = first[fine]
    return rows, peers[:count], weights[:count], above


@njit(cache=True)
def find(bits: NDArray[np.uint64], wanted: NDArray[np.uint64], row: int) -> int:
    """Label that a row of `wanted` is, or -1; binary search, as the labels are sorted."""
    low, high = 0, len(bits)
    while low < high:
        middle = (low + high) // 2
        word = 0
        while word < bits.shape[1] and bits[middle, word] == wanted[row, word]:
            word += 1
        if word == bits.shape[1]:
            return middle
        if bits[middle, word] < wanted[row, word]:
            low = middle + 1
        else:
            high = middle
    return -1


@njit(cache=True)
def assemble(
    bits: NDArray[np.uint64],
    wanted: NDArray[np.uint64],
    held: NDArray[np.int64],
    digits: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Give every vertex a label of its own, digit by digit from the least significant.

    Who wants a label that there is has it: no two want the same. Of the others, those whose old
    label is left keep it. Vertex after vertex the rest take the digit that they want if a label is
    left that has it and the digits before, and else the other one. Here all vertices take one digit
    before any takes the next, which comes to the same: those that agree so far stay in a range, as
    their labels do, sorted from the last digit on.

    Parameters
    ----------
    bits : ndarray(uint64, shape=(labels, words))
        The labels, sorted by their words.
    wanted : ndarray(uint64, shape=(vertices, words))
        Digits that the vertices prefer; those of the old label where it is kept.
    held : ndarray(int64, shape=(vertices,))
        The old labels.
    """
    vertices = len(wanted)
    turned = digits[::-1].copy()
    order = ordered(bits, turned)
    top = tops(bits, order, turned)
    splits = np.bincount(top, minlength=len(digits) + 2)
    sure = np.zeros(vertices, dtype=np.bool_)
    taken = np.zeros(vertices, dtype=np.bool_)
    for v in range(vertices):
        label = find(bits, wanted, v)
        if label >= 0:
            sure[v] = taken[label] = True
    for v in range(vertices):
        if not sure[v] and not taken[held[v]]:
            wanted[v] = bits[held[v]]
            sure[v] = True
    vertex = np.arange(vertices)
    other = np.empty_like(vertex)
    for i in range(len(turned), 0, -1):
        if splits[i] == 0:
            continue
        j = turned[i - 1]
        low = 0
        while low < vertices:
            middle, high = -1, low + 1
            while high < vertices and top[high] <= i:
                if top[high] == i:
                    middle = high
                high += 1
            if middle < 0:
                other[low:high] = vertex[low:high]
            else:
                # Labels that are left to those who are not sure.
                zeros, ones = middle - low, high - middle
                for k in range(low, high):
                    if sure[vertex[k]]:
                        if digit(wanted, vertex[k], j) == 0:
                            zeros -= 1
                        else:
                            ones -= 1
                zero, one = low, middle
                for k in range(low, high):
                    value = digit(wanted, vertex[k], j)
                    if not sure[vertex[k]]:
                        if (value == 0 and zeros == 0) or (value == 1 and ones == 0):
                            value = 1 - value
                        zeros -= 1 - value
                        ones -= value
                    if value == 0:
                        other[zero] = vertex[k]
                        zero += 1
                    else:
                        other[one] = vertex[k]
                        one += 1
            low = high
        vertex, other = other, vertex
    label_of = np.empty_like(vertex)
    label_of[vertex] = order
    return label_of
