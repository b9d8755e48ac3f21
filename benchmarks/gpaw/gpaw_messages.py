"""GPAW's runs of Au102 on Blue Gene/P: cases, map files and messages.

Sources: GPAW, gpaw/hs_operators.py (rings), c/bc.c (halos), gpaw/preconditioner.py and
gpaw/poisson.py (how many halos), and the map files of N. A. Romero's runs (Argonne, April 2010).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from types import MappingProxyType

import numpy as np

import hopmap as hm
from hopmap.simulator import Program, program_of
from hopmap.topologies import PRESETS

GRID, BANDS, CORES, REAL = 240, 1728, 4, 8  # points along an axis, bands, ranks a node, bytes
MAPPINGS = ("band", "domain")

# Halos are exchanged on a level, each coarser by 2 than the one before, and so many points wide:
# 3 for the Laplacian, 1 for coarse ones and (assumed) for changes of level.
PRECONDITION = ((0, 1), (1, 1), (1, 1), (2, 1), (2, 1), (1, 1), (1, 1), (0, 3))
RESIDUAL = (*PRECONDITION, (0, 3), *PRECONDITION)  # of a band in an iteration of RMM-DIIS
_SWEEPS = {0: (2, 2), 1: (4, 4), 2: (4, 4), 3: (4, 4)}  # before and behind the coarser level
V_CYCLE = (
    *((level, 1) for level, (down, _) in _SWEEPS.items() for _ in range(down + 2)),
    *((4, 1) for _ in range(8)),
    *((level, 1) for level, (_, up) in reversed(_SWEEPS.items()) for _ in range(up + 1)),
)  # of the Poisson solver, on the grid of half the spacing


@dataclass(frozen=True)
class Case:
    """A run: the torus, domains along x, y, z, band groups, and blocks of a call (nblocks)."""

    torus: tuple[int, int, int]
    domains: tuple[int, int, int]
    groups: int
    blocks: int

    @property
    def ranks(self) -> int:
        return int(np.prod(self.domains)) * self.groups

    @property
    def bands(self) -> int:
        """Bands of a group."""
        return BANDS // self.groups

    @property
    def points(self) -> tuple[int, ...]:
        """Grid points of a domain along x, y and z."""
        return tuple(GRID // parts for parts in self.domains)

    @property
    def block(self) -> int:
        """Bytes of a message of a ring."""
        return self.bands // self.blocks * int(np.prod(self.points)) * REAL


SMALL = Case((8, 8, 8), (8, 8, 8), groups=4, blocks=16)  # 512 nodes
LARGE = Case((8, 8, 16), (4, 8, 16), groups=8, blocks=8)  # 1,024 nodes


def machine(case: Case, settings: Mapping[str, float | str] = MappingProxyType({})) -> hm.Machine:
    """Return the case's part of a rack, with settings of one's own."""
    figures = {key: value for key, value, _ in PRESETS["bgp"].fields() if key != "topology"}
    return hm.Machine(f"torus:{'x'.join(map(str, case.torus))}*{CORES}", {**figures, **settings})


def place(case: Case, mapping: str) -> np.ndarray:
    """Return the node of every rank, shape (ranks,), as the map files have it.

    Band: the cores of a node take what there are four of, groups or domains along x, and x of the
    torus takes the other. Domain: cores take four domains along z. Nodes along z take the rest, one
    group behind the other, and turn round at the end into the next free x.
    """
    group, x, y, z = np.indices((case.groups, *case.domains)).reshape(4, -1)
    if mapping == "band":
        return to_node(case, x if case.groups == CORES else group, y, z)
    turn, along = np.divmod(group * (case.domains[2] // CORES) + z // CORES, case.torus[2])
    return to_node(
        case,
        x + turn * case.domains[0],
        y,
        np.where(turn % 2, case.torus[2] - 1 - along, along),
    )


def to_node(case: Case, *place: np.ndarray) -> np.ndarray:
    """Return nodes at coordinates, x changing first."""
    return np.ravel_multi_index(place, case.torus, order="F")


def ring(
    case: Case,
    steps: Sequence[tuple[int, float, float]],
    tail: float = 0.0,
    late: np.ndarray | None = None,
) -> Program:
    """Every rank sends to its group's predecessor and receives from the successor, again and again.

    Parameters
    ----------
    steps : sequence of (times, seconds, seconds)
        How often, the computation before both are posted, and between that and waiting for them.
    tail : float
        Share of a message that does not move before the rank waits.
    late : ndarray, shape (ranks,), optional
        When each rank begins, in seconds.
    """
    rest = round(case.block * tail)
    calls: list[tuple] = [("compute", 0.0)]
    for times, before, during in steps:
        for _ in range(times):
            calls += [("compute", before), *_exchange(case.block - rest, len(calls) + 1, during)]
            if rest:
                calls += _exchange(rest, len(calls), 0.0)
    one = program_of("ring", [calls])
    ranks, rows = np.arange(case.ranks)[:, None], len(one.kind)
    domains = case.ranks // case.groups
    peers = np.hstack([(ranks - domains) % case.ranks, (ranks + domains) % case.ranks])
    compute = np.tile(one.compute, (case.ranks, 1))
    if late is not None:
        compute[:, 0] += late
    return replace(
        one,
        offsets=np.arange(case.ranks + 1) * rows,
        rank_of=np.arange(case.ranks, dtype=np.int32),
        compute=compute.ravel(),
        peer=np.where(one.peer < 0, -1, peers[:, one.peer]).ravel().astype(np.int32),
        target=np.where(one.target < 0, -1, one.target + ranks * rows).ravel(),
        **{
            name: np.tile(getattr(one, name), case.ranks)
            for name in ("kind", "tag", "context", "size", "mode")
        },
    )


def _exchange(size: int, first: int, seconds: float) -> list[tuple]:
    """Calls, of which the first is number `first`: peer 0 is the predecessor, 1 the successor."""
    post = [("isend", 0, size), ("irecv", 1, size), ("compute", seconds)]
    return [*post, ("wait", first), ("wait", first + 1)]


@cache
def halos(case: Case, exchanges: tuple[tuple[int, int], ...], finer: int = 1) -> Program:
    """Exchange halos, axis after axis, without computing; the cell is not periodic (assumed).

    Exchanges are (level, width). Behind x, the halos along x are part of those along y, and so on.
    """
    places = np.arange(case.ranks).reshape(case.groups, *case.domains)
    tasks: list[list[tuple]] = [[] for _ in range(case.ranks)]
    for level, width in exchanges:
        sides = [-(-points * finer // 2**level) for points in case.points]
        for axis in range(3):
            face = int(np.prod([side for k, side in enumerate(sides) if k != axis])) * width * REAL
            sides[axis] += 2 * width
            near = np.moveaxis(places, axis + 1, 0)
            lower, upper = near[:-1].ravel().tolist(), near[1:].ravel().tolist()
            peers: dict[int, list[int]] = {rank: [] for rank in range(case.ranks)}
            for low, high in zip(lower, upper, strict=True):
                peers[low].append(high)
                peers[high].append(low)
            for rank, others in peers.items():
                calls = [(word, peer, face) for word in ("irecv", "isend") for peer in others]
                first = len(tasks[rank])
                tasks[rank] += [*calls, *(("wait", first + k) for k in range(len(calls)))]
    return program_of("halos", tasks)


def ring_counts(case: Case, mapping: str) -> tuple[float, int, int]:
    """Mean and most hops of a ring's step, and messages on the busiest link."""
    found = hm.evaluate(ring(case, [(1, 0.0, 0.0)]).traffic(), machine(case), place(case, mapping))
    messages = found.messages
    return messages.dilation.avg, messages.dilation.max, messages.congestion.max
