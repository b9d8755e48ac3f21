"""Where networks saturate: ``python benchmarks/open_loop/saturation.py [PICTURE]``.

Seven textbook patterns on five networks of 64 nodes, all links equal, ties split over both ways:
the static channel load gamma, and what the compiled engine accepts of periodic open-loop traffic at
loads below and beyond 1/gamma. "reached" is the highest load that every flow got through, "ratio"
the same in units of 1/gamma, "beyond" what the worst flow got of 1.5/gamma, in these units too.
Then Poisson traffic, for the picture of latency over offered load (PICTURE, or saturation.svg).
"""

from __future__ import annotations

import sys
import time
import zlib
from fractions import Fraction
from pathlib import Path

import numpy as np
from open_loop import Load, channel_load, open_loop
from saturation_figure import latency_throughput

from hopmap.figures.style import svg_text
from hopmap.topologies import both_ways, topology_from_spec
from hopmap.traces import PATTERNS, synthetic_traffic

NETWORKS = ("torus:8x8", "mesh:8x8", "torus:4x4x4", "mesh:4x4x4", "haec:4x4x4")
PERIODIC = (0.1, 0.5, 0.9, 0.98, 1.0, 1.1, 1.5)  # of 1/gamma
POISSON = (0.05, 0.25, 0.45, 0.65, 0.8, 0.88, 0.94, 0.97, 0.985, 0.995)
PACKETS = 192_000  # in the window of a load of 1/gamma, from all sources
UNIFORM = 800_000  # of uniform traffic, which 4,096 pairs share; latency needs no more than above


def sweep(spec: str, pattern: str, process: str) -> tuple[Fraction, list[Load]]:
    """Gamma, and what came of each load."""
    topology = topology_from_spec(spec)
    ways = both_ways(topology.with_links(latency=0.0))
    traffic = synthetic_traffic(pattern, topology.dims)
    gamma = channel_load(traffic, ways)
    packets = UNIFORM if pattern == "uniform" and process == "periodic" else PACKETS
    window = packets / topology.nodes * float(gamma)
    loads = []
    for part in PERIODIC if process == "periodic" else POISSON:
        seed = [zlib.crc32(f"{spec} {pattern} {process}".encode()), int(1000 * part)]
        loads.append(
            open_loop(
                traffic,
                ways,
                part / float(gamma),
                rng=np.random.default_rng(seed),
                process=process,
                warm_up=window / 4,
                window=window,
            )
        )
    return gamma, loads


def main(picture: Path) -> None:
    begin = time.process_time()
    ratios: list[float] = []
    accepted: dict[str, dict[str, list[Load]]] = {}
    limits: dict[str, dict[str, float]] = {}
    print(
        f"{'network':<12} {'pattern':<13}{'gamma':>6}{'1/gamma':>9}{'reached':>9}{'ratio':>7}"
        f"{'beyond':>8}"
    )
    for spec in NETWORKS:
        accepted[spec], limits[spec] = {}, {}
        for pattern in PATTERNS:
            gamma, loads = sweep(spec, pattern, "periodic")
            accepted[spec][pattern], limits[spec][pattern] = loads, float(1 / gamma)
            reached = max(load.accepted for load in loads)
            ratios.append(reached * float(gamma))
            print(
                f"{spec:<12} {pattern:<13}{gamma!s:>6}{float(1 / gamma):>9.4f}{reached:>9.4f}"
                f"{reached * gamma:>7.3f}{loads[-1].accepted * gamma:>8.3f}",
                flush=True,
            )
    print(f"lowest ratio {min(ratios):.4f}, highest {max(ratios):.6f}")
    print(f"processor time {time.process_time() - begin:.0f} s")
    curves = {spec: {p: sweep(spec, p, "poisson")[1] for p in PATTERNS} for spec in NETWORKS}
    figure = latency_throughput(
        curves, limits, accepted, title="Latency and throughput of open-loop traffic, 64 nodes"
    )
    if picture.suffix == ".svg":
        picture.write_text(svg_text(figure))
    else:
        figure.savefig(picture, dpi=150)
    print(f"written: {picture}; processor time {time.process_time() - begin:.0f} s")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "saturation.svg"))
