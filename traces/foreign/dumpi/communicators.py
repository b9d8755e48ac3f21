"""Communicators by the handles that calls name, and their members, from the calls that make them.

The k-th call of every member on a communicator makes the same new ones, under any number that each
process gives it: 2 is MPI_COMM_WORLD, 3 MPI_COMM_SELF, 1 none.
"""

from __future__ import annotations

from collections import deque
from math import prod
from pathlib import Path
from typing import NamedTuple

import numpy as np

from hopmap.arrays import Ints
from hopmap.traces.trace import TraceError

from .rank import Rank


def list_created(rank: Rank) -> list[Made]:
    """List calls that make communicators and groups, in order."""
    made = []
    edges = np.append(np.sort(rank.calls[:, 3]), len(rank.values))
    for name in FUNCTIONS:
        for call in rank.of(name).tolist():
            first = int(rank.calls[call, 3])
            behind = int(edges[np.searchsorted(edges, first, side="right")])
            made.append((call, Made(name, rank.values[first:behind].tolist())))
    return [each for _, each in sorted(made, key=lambda pair: pair[0])]


def numbers_of(rank: Rank, comm: Ints, number: dict[int, int]) -> Ints:
    """Communicators by their numbers in the trace."""
    handles, inverse = np.unique(comm, return_inverse=True)
    for handle in handles.tolist():
        if handle not in number:
            raise TraceError(
                f"{rank.file}: communicator {handle}: its members are unknown: expected one "
                "made by MPI_Comm_dup, _split, _create, MPI_Cart_create, _sub or MPI_Graph_create"
            )
    known = np.array([number[handle] for handle in handles.tolist()], dtype=np.int64)
    return known[inverse.reshape(-1)] if len(known) else comm


NULL, WORLD, SELF = 1, 2, 3
FUNCTIONS = (
    *("Comm_dup", "Comm_split", "Comm_create", "Cart_create", "Cart_sub", "Graph_create"),
    *("Comm_group", "Group_incl", "Group_excl"),
)


class Made(NamedTuple):
    """A call that makes a communicator or group, and the numbers of its arguments."""

    name: str
    numbers: list[int]

    def array(self, at: int) -> list[int]:
        """Return the numbers of an array at a place."""
        return self.numbers[at + 1 : at + 1 + self.numbers[at]]

    @property
    def parent(self) -> int:
        """Handle of the communicator on which it is called."""
        return self.numbers[1 if self.name in ("Cart_sub", "Graph_create") else 0]

    @property
    def place(self) -> int:
        """Where the handle of the communicator stands that it makes."""
        match self.name:
            case "Comm_dup":
                return 1
            case "Comm_split":
                return 3
            case "Comm_create":
                return 2
            case "Cart_create":
                return 5 + 2 * self.numbers[2]
            case "Cart_sub":
                return 3 + self.numbers[2]
            case _:
                at = 3 + 1 + self.numbers[3]
                return at + 1 + self.numbers[at] + 1

    @property
    def new(self) -> int:
        """Handle of the communicator that it makes."""
        return self.numbers[self.place]


def members_of(
    made: list[list[Made]], files: list[Path]
) -> tuple[list[Ints], list[dict[int, int]], int]:
    """Return members of all communicators, and which one each process's handles are.

    Also return how many communicators have no recorded order of members. These keep their parent's
    order: MPI may reorder grids and graphs, and groups may be of any making.
    `made` is by process, in order.
    """
    ranks = len(made)
    members = [np.arange(ranks), np.zeros(0, dtype=np.int64)]
    number: list[dict[int, int]] = [{WORLD: 0, SELF: 1} for _ in made]
    grids: dict[int, list[int]] = {}
    groups: list[dict[int, list[int]]] = [{} for _ in made]
    queues = [deque(calls) for calls in made]
    moved, untold = True, 0
    while moved:
        moved = False
        for rank in range(ranks):
            while queues[rank] and "roup" in queues[rank][0].name:
                _group(queues[rank].popleft(), groups[rank], number[rank], members)
                moved = True
        for rank in range(ranks):
            if not queues[rank]:
                continue
            head = queues[rank][0]
            if "roup" in head.name:
                continue
            parent = number[rank].get(head.parent)
            if parent is None:
                queues[rank].popleft()  # on a communicator that is not known
                moved = True
                continue
            inside = members[parent].tolist() if parent != 1 else [rank]
            heads = [queues[r][0] if queues[r] else head._replace(name="") for r in inside]
            if any(
                each.name == "" or "roup" in each.name or number[r].get(each.parent) != parent
                for r, each in zip(inside, heads, strict=True)
            ):
                continue
            calls = {r: queues[r].popleft() for r in inside}
            moved = True
            untold += any(
                call.new != NULL and _any_order(call, groups[r]) for r, call in calls.items()
            )
            if len({call.name for call in calls.values()}) > 1:
                raise TraceError(
                    f"{files[rank]}: MPI_{head.name}, and others on it: expected the same"
                )
            try:
                sides = _sides(calls, groups, grids.get(parent))
            except ValueError:
                raise TraceError(
                    f"{files[rank]}: MPI_{head.name}: dimensions {head.numbers[:6]}: expected as "
                    "many as the communicator has, and room for them"
                ) from None
            for side, dims in sides:
                members.append(np.array(side, dtype=np.int64))
                if dims:
                    grids[len(members) - 1] = dims
                for r in side:
                    number[r][calls[r].new] = len(members) - 1
    return members, number, untold


def _any_order(call: Made, groups: dict[int, list[int]]) -> bool:
    """Whether the order of members does not follow from the call."""
    if call.name in ("Cart_create", "Graph_create"):
        return call.numbers[call.place - 1] != 0
    return call.name == "Comm_create" and call.numbers[1] not in groups


def _group(
    call: Made, groups: dict[int, list[int]], number: dict[int, int], members: list[Ints]
) -> None:
    """Note what a group is, in world ranks, as far as it is known."""
    if call.name == "Comm_group":
        comm = number.get(call.numbers[0])
        if comm is not None:
            groups[call.numbers[1]] = members[comm].tolist()
        return
    parent, ranks = groups.get(call.numbers[0]), call.array(2)
    if parent is None or any(not 0 <= rank < len(parent) for rank in ranks):
        return
    new = call.numbers[3 + call.numbers[2]]
    inside = [parent[rank] for rank in ranks]
    if call.name == "Group_excl":
        inside = [rank for rank in parent if rank not in set(inside)]
    groups[new] = inside


def _sides(
    calls: dict[int, Made], groups: list[dict[int, list[int]]], grid: list[int] | None
) -> list[tuple[list[int], list[int]]]:
    """World ranks of each new communicator in order, and its dimensions if it is a grid."""
    name = next(iter(calls.values())).name
    inside = [rank for rank, call in calls.items() if call.new != NULL]
    if not inside:
        return []
    first = calls[inside[0]]
    if name == "Comm_split":
        sides: dict[int, list[tuple[int, int, int]]] = {}
        for place, (rank, call) in enumerate(calls.items()):
            if call.new != NULL:
                sides.setdefault(call.numbers[1], []).append((call.numbers[2], place, rank))
        return [([rank for *_, rank in sorted(side)], []) for side in sides.values()]
    if name == "Comm_create":
        group = groups[inside[0]].get(first.numbers[1])
        # Others may make disjoint ones in the same call.
        known = group if group is not None and set(group) <= set(inside) else inside
        rest = [rank for rank in inside if rank not in set(known)]
        return [(list(known), []), *([(rest, [])] if rest else [])]
    if name == "Cart_create":
        dims = first.array(2)
        if not dims or min(dims) < 1 or prod(dims) > len(calls):
            raise ValueError
        return [(inside[: prod(dims)], dims)]
    if name == "Cart_sub" and grid is not None:
        keep = [bool(flag) for flag in first.array(2)]
        table = np.array(list(calls)[: prod(grid)]).reshape(grid)
        order = [k for k, kept in enumerate(keep) if not kept] + [
            k for k, kept in enumerate(keep) if kept
        ]
        length = prod(size for size, kept in zip(grid, keep, strict=True) if kept)
        left = [size for size, kept in zip(grid, keep, strict=True) if kept]
        return [(side, left) for side in table.transpose(order).reshape(-1, length).tolist()]
    if name == "Cart_sub":
        return []
    return [(inside, [])]
