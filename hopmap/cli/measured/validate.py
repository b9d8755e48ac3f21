"""The command validate: hold the model against measured collectives."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..checks import check_folder
from ..console import print_json, print_table, say, working
from ..options import AsJson, Sets, settings_of
from .arguments import Allocations, Ranks

if TYPE_CHECKING:
    from hopmap.validation.validation import Validation

MeasuredFiles = Annotated[
    list[Path],
    typer.Argument(
        metavar="MEASURED...",
        help="CSV collective,algorithm,buffer_bytes,median_ns[,nodes,tasks_per_node].",
    ),
]
Topologies = Annotated[
    list[str],
    typer.Option("--topology", "-t", help="The machine, of all files; or repeated, of each."),
]


def validate(
    measured: MeasuredFiles,
    topology: Topologies,
    parameters: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="TOML with parameters, as calibrate writes it."),
    ] = None,
    alloc: Allocations = None,
    ranks: Ranks = 0,
    limit: Annotated[
        float,
        typer.Option(
            min=1, help="Packets of a call that is simulated, at most; others are listed."
        ),
    ] = 2e7,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder for calls.parquet and validation.html."),
    ] = None,
    set_: Sets = None,
    as_json: AsJson = False,
) -> None:
    """Hold the model against measured collectives: errors by algorithm and size, choices."""
    from hopmap.validation.validation import validate as held

    check_folder("--out", out)
    with working("simulating") as progress:
        found = held(
            measured,
            topology,
            settings=settings_of([*(set_ or []), *([str(parameters)] if parameters else [])]),
            alloc=alloc,
            ranks=ranks,
            limit=int(limit),
            progress=progress,
        )
    written = []
    if out is not None:
        with working("drawing"):
            written = [str(path) for path in found.write(out)]
    if as_json:
        print_json(found.to_dict())
        return
    show_errors(found)
    for path in written:
        say(f"written: {path}")


def show_errors(found: Validation) -> None:
    """Print errors in all and by algorithm, what is not simulated, and how choices come out."""
    from hopmap.simulator.measured.errors import (
        CLASSES,
        agreement_of,
        by_algorithm,
        choice_of,
        error_of,
        order_of,
        unknown,
    )
    from hopmap.validation.page import COLUMNS, error_cells

    measured, prediction = found.measured, found.prediction
    rows = [("all", *error_cells(error_of(prediction.time, measured.time)))]
    for sizes, (least, most) in CLASSES.items():
        of = (measured.size >= least) & (measured.size < most)
        rows.append((sizes, *error_cells(error_of(prediction.time[of], measured.time[of]))))
    print_table(("error", *COLUMNS[1:]), rows, title=", ".join(measured.files))
    say("")
    print_table(
        ("collective, algorithm", "sizes", *COLUMNS[1:]),
        [
            (f"{g.collective} {g.algorithm}", g.sizes, *error_cells(g.error))
            for g in by_algorithm(measured, prediction)
        ],
        left=2,
    )
    if left := unknown(measured, prediction):
        say("")
        print_table(
            ("not simulated", "why", "calls"),
            [(f"{c} {a}", why, count) for (c, a, why), count in left.items()],
            left=2,
        )
    for note in found.notes:
        say(note)
    say("")
    choice, order = choice_of(measured, prediction), order_of(measured, prediction)
    say(
        f"fastest known algorithm: found in {choice.right} of {choice.cells} cells, that or one "
        f"within 5 % of it in {choice.within_5}"
    )
    if order.cells:
        say(
            f"order of algorithms at 1 MiB and above: Kendall's tau {order.tau:.2f} "
            f"(median of {order.cells} cells)"
        )
    if (between := agreement_of(measured, prediction)).cells:
        say(
            f"two files agree on that order with Kendall's tau {between.tau:.2f} "
            f"(median of {between.cells} cells)"
        )
