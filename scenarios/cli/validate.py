"""The command validate, and calibrate for collectives: measured times beside the model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .arguments import AsJson, Sets, expect_folder, settings_given
from .console import print_json, print_table, say, working

if TYPE_CHECKING:
    from hopmap.scenarios.measured.validation import Validation
    from hopmap.simulator.measured.calibration import CollectiveFit

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
Allocations = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="FILE",
        help="Hosts of the ranks (rank,host), of all files or of each; else all nodes, in order.",
    ),
]
Ranks = Annotated[
    int,
    typer.Option(min=0, metavar="N", help="Leave out calls of more ranks; 0: none."),
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
    from hopmap.scenarios.measured.validation import validate as held

    expect_folder("--out", out)
    with working("simulating") as progress:
        found = held(
            measured,
            topology,
            settings=settings_given([*(set_ or []), *([str(parameters)] if parameters else [])]),
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
        print_json(found.facts)
        return
    show_errors(found)
    for path in written:
        say(f"written: {path}")


def show_errors(found: Validation) -> None:
    """Print errors in all and by algorithm, what is not simulated, and how choices come out."""
    from hopmap.scenarios.report.validation import COLUMNS, error_cells
    from hopmap.simulator.measured.agreement import agreement_of
    from hopmap.simulator.measured.errors import (
        CLASSES,
        by_algorithm,
        choice_of,
        error_of,
        order_of,
        unknown,
    )

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


def calibrate_to_collectives(
    measured: Sequence[Path],
    topology: Sequence[str],
    keys: Sequence[str],
    alloc: Sequence[Path] | None,
    ranks: int,
    settings: dict[str, str | int | float],
    out: Path | None,
    as_json: bool,
) -> None:
    """Fit parameters to collectives, print and write them."""
    from hopmap.scenarios.measured.validation import calibrate_collectives
    from hopmap.traces.safety.atomic_files import replacing

    with working("fitting") as progress:
        fit = calibrate_collectives(
            measured,
            topology,
            keys=keys,
            settings=settings,
            alloc=alloc,
            ranks=ranks,
            progress=progress,
        )
    if out is not None:
        with replacing(out) as partial:
            partial.write_text(_toml(measured, topology, fit), encoding="utf-8")
    if as_json:
        print_json(fit_facts(fit))
        return
    _show_fit(fit, ", ".join(map(str, measured)))
    if out is not None:
        say(f"written: {out}")
        say(f"use it:  hopmap simulate ... --set {out}")


def fit_facts(fit: CollectiveFit) -> dict[str, Any]:
    """Return a fit as plain values."""
    return {
        "parameters": dict(fit.parameters),
        "interval": {key: list(pair) for key, pair in fit.fit.interval.items()},
        "calls": len(fit.measured),
        "error": {name: error._asdict() for name, error in fit.errors().items()},
        "by": [
            {"collective": group.collective, "algorithm": group.algorithm, "sizes": group.sizes}
            | group.error._asdict()
            for group in fit.by_algorithm()
        ],
        "unexplained": [
            {"collective": c, "algorithm": a, "buffer_bytes": size, "ratio": ratio}
            for c, a, size, ratio in fit.unexplained()
        ],
    }


def _show_fit(fit: CollectiveFit, title: str) -> None:
    from hopmap.scenarios.report.validation import COLUMNS, error_cells

    from .calibrate import show_parameter

    print_table(
        ("parameter", "value", "from", "to (95 %)"),
        [
            (
                key,
                show_parameter(key, value),
                *(show_parameter(key, e) for e in fit.fit.interval[key]),
            )
            for key, value in fit.parameters.items()
        ],
        title=title,
    )
    say("")
    print_table(
        ("error", *COLUMNS[1:]),
        [(name, *error_cells(error)) for name, error in fit.errors().items()],
    )
    say("")
    print_table(
        ("collective, algorithm", "sizes", *COLUMNS[1:]),
        [
            (f"{group.collective} {group.algorithm}", group.sizes, *error_cells(group.error))
            for group in fit.by_algorithm()
        ],
        left=2,
    )
    if rows := fit.unexplained():
        say("")
        print_table(
            ("cannot explain", "bytes", "predicted / measured"),
            [(f"{c} {a}", size, f"{ratio:.2f}") for c, a, size, ratio in rows],
        )


def _toml(measured: Sequence[Path], topology: Sequence[str], fit: CollectiveFit) -> str:
    errors = fit.errors()
    of = errors["1 MiB and above"] if errors["1 MiB and above"].rows else errors["all sizes"]
    lines = [
        f"# hopmap calibrate {' '.join(str(path) for path in measured)} "
        + " ".join(f"--topology {spec}" for spec in topology),
        f"# {of.rows} calls of 1 MiB and above: median error {100 * of.median:.1f} %",
        "[parameters]",
        *(f'"{key}" = {value!r}' for key, value in fit.settings.items()),
        "",
        "[validated]  # by measurement on these networks",
        f"topologies = {[str(spec) for spec in topology]!r}",
        f"error = {of.median!r}",
    ]
    return "\n".join(lines) + "\n"
