"""Fit the model to measured collectives, print and write what was found."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..console import print_json, print_table, say, working
from ..options import settings_of
from .arguments import show_parameter

if TYPE_CHECKING:
    from hopmap.simulator.measured.calibration import CollectiveFit

    from .calibrate import CollectiveOptions


def calibrate_to_collectives(
    measured: Sequence[Path], options: CollectiveOptions, out: Path | None, as_json: bool
) -> None:
    """Fit parameters to collectives, print and write them."""
    from hopmap.traces.safety.atomic_files import replacing
    from hopmap.validation.validation import calibrate_collectives

    with working("fitting") as progress:
        fit = calibrate_collectives(
            measured,
            options.topology or [],
            keys=options.fit or [],
            settings=settings_of(options.sets),
            alloc=options.alloc,
            ranks=options.ranks,
            progress=progress,
        )
    if out is not None:
        with replacing(out) as partial:
            partial.write_text(_toml(measured, options.topology or [], fit), encoding="utf-8")
    if as_json:
        print_json(fit.to_dict())
        return
    _show_fit(fit, ", ".join(map(str, measured)))
    if out is not None:
        say(f"written: {out}")
        say(f"use it:  hopmap simulate ... --set {out}")


def _show_fit(fit: CollectiveFit, title: str) -> None:
    from hopmap.validation.page import COLUMNS, error_cells

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
    sizes = "1 MiB and above" if errors["1 MiB and above"].rows else "all sizes"
    of = errors[sizes]
    lines = [
        f"# hopmap calibrate {' '.join(str(path) for path in measured)} "
        + " ".join(f"--topology {spec}" for spec in topology),
        f"# {of.rows} calls, {sizes}: median error {100 * of.median:.1f} %",
        "[parameters]",
        *(f'"{key}" = {value!r}' for key, value in fit.settings.items()),
        "",
        "[validated]  # by measurement on these networks",
        f"topologies = {[str(spec) for spec in topology]!r}",
        f"error = {of.median!r}",
    ]
    return "\n".join(lines) + "\n"
