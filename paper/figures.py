"""The figure of the paper: what a placement changes of NAS MG on 16 nodes, and where it pays.

``python paper/figures.py`` writes paper/mg.png, and prints the figures of the text.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import hopmap as hm
from hopmap.figures.style import BLUE, GREY, ORANGE, WIDTH, new_figure, style

HERE = Path(__file__).parent
TRACE = HERE.parent / "scenarios" / "recorded" / "mg.S.16"
NETWORK = "torus:4x2x2"
ORDERS = {"default order": "identity", "auto": "auto(moves=100000)"}
COLOURS = {"default order": ORANGE, "auto": BLUE}
BANDWIDTHS = (0.5, 1, 2, 4, 8, 16, 32)  # GB/s
QUOTED = 2  # GB/s, of the text


def measure() -> dict[str, dict[str, Any]]:
    """Return bytes of links, hop-bytes, and runtimes by bandwidth, of each order."""
    found = {}
    for name, mapper in ORDERS.items():
        placed = hm.map_ranks(TRACE, NETWORK, mapper, seed=0)
        runs = []
        for speed in BANDWIDTHS:
            settings = {"link.bandwidth": f"{speed} GB/s", "compute.scale": 0}
            runs.append(hm.simulate(TRACE, hm.Machine(NETWORK, settings), placed))
        found[name] = {
            "links": np.sort(runs[0].link_bytes)[::-1],
            "hop_bytes": int(hm.evaluate(TRACE, NETWORK, placed).bytes.dilation.sum),
            "makespans": np.array([run.makespan for run in runs]),
        }
    return found


def quote(found: dict[str, dict[str, Any]]) -> dict[str, float]:
    """Return what the text quotes: percents that `auto` saves of the default order."""
    default, auto = (found[name] for name in ORDERS)
    place = BANDWIDTHS.index(QUOTED)
    saved = {
        "hop_bytes": 1 - auto["hop_bytes"] / default["hop_bytes"],
        "busiest_link": 1 - auto["links"][0] / default["links"][0],
        "runtime": 1 - auto["makespans"][place] / default["makespans"][place],
        "runtime_fastest": 1 - auto["makespans"][-1] / default["makespans"][-1],
        "runtime_slowest": 1 - auto["makespans"][0] / default["makespans"][0],
    }
    return {key: round(100 * float(value), 1) for key, value in saved.items()}


def draw(found: dict[str, dict[str, Any]], path: Path) -> None:
    """Write the figure."""
    with style():
        figure = new_figure(2.4, width=2 * WIDTH)
        left, right = figure.subplots(1, 2)
        for name, values in found.items():
            look = {"color": COLOURS[name], "label": name}
            left.step(np.arange(len(values["links"])), values["links"] / 1000, **look)
            right.plot(BANDWIDTHS, values["makespans"] * 1e6, marker="o", markersize=3, **look)
        left.set_xlabel("directed links, busiest first")
        left.set_ylabel("kB")
        left.set_title("bytes on links")
        right.set_xlabel("bandwidth of a link, GB/s")
        right.set_ylabel("us")
        right.set_title("simulated runtime")
        right.set_ylim(bottom=0)
        right.set_xscale("log", base=2)
        right.set_xticks(BANDWIDTHS, [f"{speed:g}" for speed in BANDWIDTHS])
        for axes in (left, right):
            axes.grid(color=GREY, alpha=0.3, linewidth=0.5)
        left.legend(frameon=False)
        figure.savefig(path, dpi=200)


if __name__ == "__main__":
    measured = measure()
    draw(measured, HERE / "mg.png")
    print(quote(measured))
