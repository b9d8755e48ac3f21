"""The page of a validation: errors in tables and a figure, and a table of all calls."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from hopmap.report.report import image_uri, rendered
from hopmap.simulator.measured.errors import (
    LARGE,
    Error,
    by_algorithm,
    choice_of,
    error_of,
    order_of,
    unknown,
)
from hopmap.simulator.measured.files import Measured
from hopmap.simulator.measured.prediction import Prediction
from hopmap.traces.safety.atomic_files import replacing
from hopmap.version import __version__

COLUMNS = ("", "calls", "median", "90th percentile", "within 5 %", "10 %", "25 %", "bias")


def write_validation(
    folder: str | Path, measured: Measured, prediction: Prediction, topologies: Sequence[str]
) -> tuple[Path, Path]:
    """Write ``calls.parquet`` and ``validation.html``, which needs nothing else; return both paths.

    Topologies are those of each file.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    calls, page = folder / "calls.parquet", folder / "validation.html"
    with replacing(calls) as partial:
        pq.write_table(_calls(measured, prediction, topologies), partial)
    with replacing(page) as partial:
        partial.write_text(_page(measured, prediction, topologies), encoding="utf-8")
    return calls, page


def error_cells(error: Error) -> tuple[str, ...]:
    """Write an error for people, one text for each of `COLUMNS` but the first; a dash for NaN."""
    shares = [*(f"{100 * share:.1f} %" for share in error[1:-1]), f"{100 * error.bias:+.1f} %"]
    return f"{error.rows:,}", *("-" if share[:-2].endswith("nan") else share for share in shares)


def _calls(measured: Measured, prediction: Prediction, topologies: Sequence[str]) -> pa.Table:
    file = measured.file.tolist()
    return pa.table(
        {
            "file": [measured.files[k] for k in file],
            "topology": [topologies[k] for k in file],
            "collective": list(measured.collective),
            "algorithm": list(measured.algorithm),
            "buffer_bytes": measured.size,
            "nodes": measured.nodes,
            "tasks_per_node": measured.tasks,
            "measured": measured.time,
            "predicted": pa.array(prediction.time, mask=np.isnan(prediction.time)),
            "not_simulated": list(prediction.why),
        }
    )


def _page(measured: Measured, prediction: Prediction, topologies: Sequence[str]) -> str:
    from hopmap.figures.style import svg_text
    from hopmap.validation.figures import validation_figure

    pairs = zip(measured.files, topologies, strict=True)
    names = [f"{Path(file).name} on {topology}" for file, topology in pairs]
    figure = validation_figure(measured, prediction)
    large = measured.size >= LARGE
    choice, order = choice_of(measured, prediction), order_of(measured, prediction)
    everything = error_of(prediction.time, measured.time)
    beyond = error_of(prediction.time[large], measured.time[large])
    return rendered(
        Path(__file__).with_name("page.html.j2"),
        names=names,
        facts=[
            ("Calls", f"{everything.rows:,} of {len(measured):,} simulated"),
            ("Fastest algorithm found", f"{choice.right:,} of {choice.cells:,} cells"),
            ("That, or one within 5 % of it", f"{choice.within_5:,} of {choice.cells:,} cells"),
            (
                "Order of algorithms at 1 MiB and above",
                f"Kendall's tau {order.tau:.2f} (median of {order.cells:,} cells)",
            ),
            ("Made by", f"hopmap {__version__}"),
        ],
        picture=image_uri(svg_text(figure)),
        width=round(96 * figure.get_figwidth()),
        columns=COLUMNS,
        errors=[
            ("all sizes", *error_cells(everything)),
            ("1 MiB and above", *error_cells(beyond)),
        ],
        groups=[
            (f"{g.collective} {g.algorithm}, {g.sizes}", *error_cells(g.error))
            for g in by_algorithm(measured, prediction)
        ],
        unknown=[
            (f"{c} {a}", why, f"{rows:,}")
            for (c, a, why), rows in unknown(measured, prediction).items()
        ],
    )
