"""The command coarsen: a large graph cut into as many blocks as there are places."""

from __future__ import annotations

import re
from enum import StrEnum
from math import ceil, prod
from pathlib import Path
from typing import Annotated

import typer

from .console import print_json, print_table, say_written, warn, working
from .options import AsJson, Trace, check_out

Way = StrEnum("Way", "RMS RB")
"""How the graph is cut; see `mappers.partitions.partition`."""


class Preset(StrEnum):
    """How hard KaHIP tries."""

    FAST = "fast"
    ECO = "eco"
    STRONG = "strong"


def coarsen(
    graph: Trace,
    nodes: Annotated[
        str,
        typer.Option(
            "--nodes",
            "-n",
            help="Blocks, like 512, or a hierarchy S, innermost first, like 4:16:8.",
        ),
    ],
    out: Annotated[Path, typer.Option(help="Traffic of the blocks: .npz .mtx .csv .graph .grf.")],
    by: Annotated[
        Way, typer.Option(help="rms, multisection along the hierarchy; rb, recursive bisection.")
    ] = Way.RMS,
    epsilon: Annotated[
        float | None,
        typer.Option(
            min=0, help="How far a block may exceed the mean, 0.03 is 3 %; 0 of rms, 0.03 of rb."
        ),
    ] = None,
    blocks: Annotated[
        Path | None, typer.Option(help="Mapping file to write: the block of each vertex.")
    ] = None,
    preset: Annotated[Preset, typer.Option(help="KaHIP's preset.")] = Preset.FAST,
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same blocks.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Cut a graph of many vertices into blocks, and write the traffic between the blocks."""
    if not re.fullmatch(r"[1-9]\d{0,7}(:[1-9]\d{0,7}){0,31}", nodes):
        raise typer.BadParameter(f"--nodes {nodes}: expected a number like 512, or S like 4:16:8")
    check_out(out, blocks)
    import numpy as np

    from hopmap.launchers.mapping_files import write_mapping
    from hopmap.mappers.partitions.partition import (
        IMBALANCE,
        bisection_model,
        multisection_model,
    )
    from hopmap.topologies import topology_from_spec
    from hopmap.traces.formats.files import save_traffic
    from hopmap.traces.sources import open_source

    sizes = [int(size) for size in nodes.split(":")]
    with working("cutting"):
        whole = open_source(graph).traffic()
        rng = np.random.default_rng(seed)
        if by is Way.RMS:
            slack = epsilon or 0.0
            made = multisection_model(whole, sizes, rng, preset=preset.value, epsilon=slack)
        else:
            slack = IMBALANCE if epsilon is None else epsilon
            made = bisection_model(whole, prod(sizes), rng, preset=preset.value, epsilon=slack)
        save_traffic(out, made.traffic)
    size = np.bincount(made.block, minlength=prod(sizes))
    if blocks is not None:
        machine = topology_from_spec(f"tree:{nodes}*{size.max()}")
        write_mapping(blocks, made.block, machine)
    mean = whole.ranks / len(size)
    levels = len(sizes) if by is Way.RMS else 1
    most = ceil(mean) * (1 + slack) ** levels
    if size.max() > most:
        above = int((size > most).sum())
        warn(
            f"{above} of {len(size)} blocks exceed {1 + slack:g} times the mean: KaHIP exceeds it "
            "for small blocks; --by rms without --epsilon keeps it"
        )
    cut = int(made.traffic.bytes.sum())
    facts = {
        "blocks": len(size),
        "vertices": whole.ranks,
        "smallest": int(size.min()),
        "mean": mean,
        "largest": int(size.max()),
        "pairs": made.traffic.pairs,
        "cut": cut,
        "out": str(out),
    }
    if as_json:
        print_json(facts | ({} if blocks is None else {"mapping": str(blocks)}))
        return
    print_table(
        ("blocks", "vertices of one", "mean", "pairs that talk", "weight cut"),
        [(len(size), f"{size.min()} to {size.max()}", f"{mean:.1f}", facts["pairs"], cut)],
        title=f"{graph} by {'multisection' if by is Way.RMS else 'recursive bisection'}",
    )
    say_written(out, blocks)
