"""Predict GPAW's time on 1,024 nodes of Blue Gene/P under two mappings from its runs on 512.

Computing is what the runs on 512 nodes leave when replays of their messages are taken off, scaled
by stated rules. The engine `flow` replays messages, with the figures of `preset:bgp`. README.md
here has the tables, the rules, and what the model cannot know.

    python benchmarks/gpaw/gpaw.py            some minutes
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np
from gpaw_messages import (
    LARGE,
    MAPPINGS,
    RESIDUAL,
    SMALL,
    V_CYCLE,
    Case,
    halos,
    machine,
    place,
    ring,
    ring_counts,
)

import hopmap as hm

# Seconds on 512 nodes, band and domain: GPAW's Au_cluster runs, N. A. Romero, April 2010.
MEASURED = {
    "Total": (5348.372, 5365.997),
    "SCF-cycle": (5130.082, 5147.785),
    "SCF-cycle, own": (4.613, 6.595),
    "Poisson": (547.331, 568.398),
    "Orthonormalize": (1258.718, 1257.023),
    "Orthonormalize, calc_matrix": (911.827, 910.340),
    "Orthonormalize, rotate_psi": (339.232, 339.099),
    "RMM-DIIS": (2424.579, 2428.998),
    "RMM-DIIS, own": (1163.140, 1165.985),
    "Subspace diag": (819.492, 811.825),
    "Subspace diag, calc_matrix": (423.220, 413.991),
    "Subspace diag, rotate_psi": (322.831, 322.801),
}
LINK = 375e6  # bytes/s of payload
SLOW_LINK = 300e6  # if many streams on a link cost a fifth of it (assumed)
MEMORY = 390e6  # bytes/s of copies within a node, as in the preset
PEAK = 3.4e9  # flop/s of a core: 850 MHz, two fused multiply-adds
CALLS = 20  # SCF iterations
RADIUS = 0.3  # of the sphere with the atoms, as a share of the cell (assumed)
# On 1,024 nodes a rank has half of the bands, at as many points: factors, likely, least and most.
BY_BAND = (0.5, 0.47, 0.6)  # work a band; 60x30x15 points have more surface than 30x30x30
PROJECTORS = (0.5, 0.4, 0.7)  # likewise, and another domain may have most atoms
BY_GRID = (1.0, 0.95, 1.25)  # every band group does all of it; coarse grids are cut finer
MIXED = (0.75, 0.5, 1.0)  # bands and grid
SAME = (1.0, 0.7, 1.3)  # matrices of 1,728 x 1,728


class How(NamedTuple):
    """One assumption for each thing that is not known of the rings."""

    gemm: float = 1.0  # seconds of a matrix product, in multiples of half of that on 512 nodes
    link: float = LINK  # bytes/s
    # whether part of a message moves only when the rank waits; copies within a node are then so
    # slow that this costs both mappings as much on 512 nodes
    tail: bool = False
    # phases to whose calc_matrix domains with atoms come late; elsewhere all have as much to do
    late: tuple[str, ...] = ("Orthonormalize",)

    @property
    def settings(self) -> dict[str, float]:
        """Four copies within a node take as long as eight messages on a link, with a tail."""
        memory = {"memory.bandwidth": self.link / 2} if self.tail else {}
        return {"link.bandwidth": self.link, **memory}


PHASES = ("Orthonormalize", "Subspace diag")
RINGS = (How(), How(gemm=0.97), How(gemm=1.12), How(link=SLOW_LINK), How(tail=True))


def mean(name: str) -> float:
    return sum(MEASURED[name]) / 2


def difference(name: str) -> float:
    band, domain = MEASURED[name]
    return domain - band


def product_seconds(case: Case, how: How) -> tuple[float, float]:
    """Seconds of a matrix product, and the share of a message that moves late.

    On 512 nodes products fill rotate_psi. With a tail they go at peak speed, and tails fill it.
    """
    whole = mean("Subspace diag, rotate_psi") / CALLS / SMALL.blocks
    seconds, tail = whole / SMALL.groups, 0.0
    if how.tail:
        seconds = 2 * SMALL.bands**2 * float(np.prod(SMALL.points)) / SMALL.blocks / PEAK
        moved = ring_counts(SMALL, "domain")[2] * SMALL.block / LINK
        tail = (whole - SMALL.groups * seconds) / (SMALL.groups - 1) / moved
    return seconds * how.gemm * case.bands / SMALL.bands, tail


@cache
def lateness(case: Case) -> np.ndarray:
    """When domains are done with projectors, as a share of the last one's time; shape (ranks,).

    By the part of a domain that is in the sphere with the atoms.
    """
    squares = ((np.arange(480) + 0.5) / 480 - 0.5) ** 2
    inside = squares[:, None, None] + squares[:, None] + squares < RADIUS**2
    parts = [size for count in case.domains for size in (count, 480 // count)]
    part = inside.reshape(parts).mean((1, 3, 5)).ravel()
    return np.tile(part / part.max(), case.groups)


@cache
def rotate_psi(case: Case, mapping: str, how: How) -> float:
    """Seconds of the products and messages of all calls of matrix_multiply."""
    seconds, tail = product_seconds(case, how)
    steps = [(1, seconds, seconds), (case.groups - 2, 0.0, seconds)]
    # All blocks take as long.
    block = replay(ring(case, steps, tail), case, mapping, how.settings)
    return CALLS * case.blocks * block


@cache
def calc_matrix(case: Case, mapping: str, how: How, late: float = 0.0) -> float:
    """Seconds of all calls of calculate_matrix_elements, the operator apart.

    The last domain comes `late` seconds late to a call, which is part of the time.
    """
    seconds, tail = product_seconds(case, how)
    others = (case.groups // 2 - 1, 0.0, seconds)
    own = [seconds * (block + 1) / case.blocks for block in range(case.blocks)]  # lower part only
    steps = [step for part in own for step in ((1, seconds, part), others)]
    program = ring(case, steps, tail, late * lateness(case))
    return CALLS * replay(program, case, mapping, how.settings)


@cache
def halo(case: Case, mapping: str, memory: float = MEMORY, *, poisson: bool = False) -> float:
    """Seconds of the halos of a band's residual, or of a V-cycle of the Poisson solver."""
    program = halos(case, V_CYCLE, finer=2) if poisson else halos(case, RESIDUAL)
    return replay(program, case, mapping, {"memory.bandwidth": memory})


def replay(program: hm.Program, case: Case, mapping: str, settings: dict[str, float]) -> float:
    """Seconds of a run."""
    where, node_of = machine(case, settings), place(case, mapping)
    return hm.simulate(program, where, node_of, engine="flow", extrapolate=False).makespan


def more(seconds: Callable[..., float], case: Case, *arguments: object, **named: object) -> float:
    """Seconds that something takes longer under domain than under band."""
    band, domain = (seconds(case, mapping, *arguments, **named) for mapping in MAPPINGS)
    return domain - band


@cache
def late_by(name: str, how: How) -> float:
    """Seconds a call by which the last domain is late on 512 nodes, if that fills calc_matrix."""
    late = 0.0
    for _ in range(2):
        replayed = sum(calc_matrix(SMALL, mapping, how, late) for mapping in MAPPINGS) / 2
        late += (mean(name) - replayed) / CALLS
    return late


def check() -> dict[str, float]:
    """Seconds by which domain takes longer on 512 nodes, as replayed."""
    late = late_by("Orthonormalize, calc_matrix", How())
    calls = CALLS * SMALL.bands
    return {
        "Orthonormalize, calc_matrix": more(calc_matrix, SMALL, How(), late),
        "Orthonormalize, rotate_psi": more(rotate_psi, SMALL, How()),
        "Subspace diag, calc_matrix": more(calc_matrix, SMALL, How()),
        "Subspace diag, rotate_psi": more(rotate_psi, SMALL, How()),
        "RMM-DIIS": calls * more(halo, SMALL),
    }


def copy_speed(seconds: float) -> float:
    """Bandwidth of copies within a node at which RMM-DIIS on 512 nodes takes so much longer."""
    low, high = 1e8, 1e11
    while high / low > 1.01:
        middle = (low * high) ** 0.5
        longer = CALLS * SMALL.bands * more(halo, SMALL, middle) > seconds
        low, high = (middle, high) if longer else (low, middle)
    return (low * high) ** 0.5


def predict(mapping: str, how: How, memory: float, scale: int) -> dict[str, float]:
    """Seconds on 1,024 nodes, by phase; what is not replayed is scaled by the factors `scale`."""

    def rest(name: str, replayed: float, factors: tuple[float, ...]) -> float:
        return (mean(name) - replayed) * factors[scale]

    before = how._replace(gemm=1.0)
    rotate = rotate_psi(LARGE, mapping, how)
    calc = calc_matrix(LARGE, mapping, how)
    rotated = sum(rotate_psi(SMALL, each, before) for each in MAPPINGS) / 2
    calced = sum(calc_matrix(SMALL, each, before) for each in MAPPINGS) / 2
    found: dict[str, float] = {}
    for phase in PHASES:
        parts = [f"{phase}, calc_matrix", f"{phase}, rotate_psi"]
        factors = PROJECTORS if phase == "Orthonormalize" else BY_BAND
        if phase in how.late:
            late = late_by(parts[0], before)
            found[parts[0]] = calc_matrix(LARGE, mapping, how, late * factors[0])
            found[parts[0]] += CALLS * late * (factors[scale] - factors[0])
        else:
            found[parts[0]] = calc + rest(parts[0], calced, factors)
        found[parts[1]] = rotate + rest(parts[1], rotated, BY_BAND)
        found[phase] = sum(found[part] for part in parts)
        found[phase] += rest(phase, sum(map(mean, parts)), SAME)
    bands = CALLS * SMALL.bands
    replayed = bands * sum(halo(SMALL, each, memory) for each in MAPPINGS) / 2
    found["RMM-DIIS"] = rest("RMM-DIIS", replayed, BY_BAND)
    found["RMM-DIIS"] += bands / 2 * halo(LARGE, mapping, memory)
    found["RMM-DIIS, own"] = rest("RMM-DIIS, own", 0.0, BY_BAND)
    found["Poisson"] = MEASURED["Poisson"][0] * BY_GRID[scale]
    if mapping == "domain":
        growth = more(halo, LARGE, poisson=True) / more(halo, SMALL, poisson=True)
        found["Poisson"] += difference("Poisson") * (growth, 0.0, 2 * growth)[scale]
    found["SCF-cycle, own"] = rest("SCF-cycle, own", 0.0, SAME)
    inner = ("Poisson", "Orthonormalize", "RMM-DIIS", "Subspace diag", "SCF-cycle, own")
    found["SCF-cycle"] = sum(found[name] for name in inner)
    found["SCF-cycle"] += rest("SCF-cycle", sum(map(mean, inner)), MIXED)
    found["Total"] = found["SCF-cycle"] + rest("Total", mean("SCF-cycle"), MIXED)
    return found


def main() -> None:
    for case in (SMALL, LARGE):
        for mapping in MAPPINGS:
            hops, most, busiest = ring_counts(case, mapping)
            print(f"{case.ranks} ranks, {mapping}: ring {hops:.2f} hops ({most}), link {busiest}")
    seconds, tail = product_seconds(SMALL, How(tail=True))
    usual = product_seconds(SMALL, How())[0]
    print(
        f"product on 512 nodes: {usual:.4f} s, {seconds / usual:.0%} of peak; or {seconds:.4f} s "
        f"and {tail:.2f} of each message late"
    )
    print("domain - band on 512 nodes: phase | measured | replayed")
    checked = check()
    for name, replayed in checked.items():
        print(f"{name} | {difference(name):+.1f} | {replayed:+.1f}")
    margin = max(abs(difference(name) - value) for name, value in checked.items())
    exact, slow, fast = (copy_speed(difference("RMM-DIIS") + by) for by in (0, margin, -margin))
    print(f"copies within a node: {exact / 1e6:.0f} MB/s, {slow / 1e6:.0f} to {fast / 1e6:.0f}")
    choices = [
        (how, memory, scale)
        for each in RINGS
        for how in (each, each._replace(late=()), each._replace(late=PHASES))
        for memory in (MEMORY, slow, fast)
        for scale in range(3)
    ]
    runs = {m: [predict(m, *choice) for choice in choices] for m in MAPPINGS}
    print("phase | band | domain | domain - band, seconds on 1,024 nodes")
    for name in MEASURED:
        band, domain = ([run[name] for run in runs[mapping]] for mapping in MAPPINGS)
        less = [d - b for b, d in zip(band, domain, strict=True)]
        print(f"{name} | {show(band)} | {show(domain)} | {show(less, margin)}")


def show(values: list[float], margin: float = 0.0) -> str:
    """Likely value, least to most."""
    sign = "+" if margin else ""
    low, high = min(values) - margin, max(values) + margin
    return f"{values[0]:{sign}.0f} ({low:{sign}.0f} to {high:{sign}.0f})"


if __name__ == "__main__":
    main()
