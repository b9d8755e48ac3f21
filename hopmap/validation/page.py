"""The page of a validation: errors in tables and a figure, and a table of all calls."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from markupsafe import Markup

from hopmap.report.report import image_uri
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

    Parameters
    ----------
    topologies : sequence of str
        Of each file.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    calls, page = folder / "calls.parquet", folder / "validation.html"
    with replacing(calls) as partial:
        pq.write_table(_calls(measured, prediction, topologies), partial)
    with replacing(page) as partial:
        partial.write_text(_page(measured, prediction, topologies), encoding="utf-8")
    return calls, page


def percent(share: float) -> str:
    """Write a share for people; a dash for NaN."""
    return "-" if np.isnan(share) else f"{100 * share:.1f} %"


def error_cells(error: Error) -> tuple[str, ...]:
    """Write an error for people, one text for each of `COLUMNS` but the first."""
    return (f"{error.rows:,}", *(percent(value) for value in error[1:-1]), _signed(error.bias))


def _signed(share: float) -> str:
    return "-" if np.isnan(share) else f"{100 * share:+.1f} %"


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
    from jinja2 import Environment, StrictUndefined

    from hopmap.figures.style import svg_text
    from hopmap.validation.figures import validation_figure

    pairs = zip(measured.files, topologies, strict=True)
    names = [f"{Path(file).name} on {topology}" for file, topology in pairs]
    figure = validation_figure(measured, prediction)
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    here = Path(__file__).parent
    template = environment.from_string((here / "page.html.j2").read_text(encoding="utf-8"))
    large = measured.size >= LARGE
    choice, order = choice_of(measured, prediction), order_of(measured, prediction)
    everything = error_of(prediction.time, measured.time)
    beyond = error_of(prediction.time[large], measured.time[large])
    return template.render(
        css=Markup((here.parent / "report" / "page.css").read_text(encoding="utf-8")),
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
