"""Commands on measured times: calibrate fits the model to them, validate holds it against them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hopmap.units import show_bytes, show_seconds

from .console import print_json, print_table, say, say_written, working
from .options import (
    AsJson,
    Sets,
    check_folder,
    check_options,
    check_out,
    check_picture,
    settings_of,
)
from .overwriting import expect_free

if TYPE_CHECKING:
    from hopmap.simulator.measured.errors import Error, Group, OfOperation
    from hopmap.validation.validation import Validation

Allocations = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="FILE",
        help="Host file (rank,host), one for all files or one for each; default: all nodes.",
    ),
]
Ranks = Annotated[
    int,
    typer.Option(min=0, metavar="N", help="Leave out calls with more ranks; 0: no limit."),
]


@dataclass(frozen=True)
class CollectiveOptions:
    """How parameters are fitted to collectives."""

    topology: Annotated[
        list[str] | None,
        typer.Option(
            "--topology", "-t", help="Collectives: machine of all files, or repeated, of each."
        ),
    ] = None
    fit: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY", help="Collectives: parameter to fit; may be repeated."),
    ] = None
    alloc: Allocations = None
    ranks: Ranks = 0
    sets: Sets = None


@dataclass(frozen=True)
class PingPongOptions:
    """How parameters are fitted to ping-pongs."""

    plot: Annotated[
        Path | None, typer.Option(help="Figure to write (.svg, .png, .pdf): fit and errors.")
    ] = None
    hops: Annotated[
        int | None,
        typer.Option(min=0, help="Links between the nodes, if no column says so; default: 1."),
    ] = None
    round_trip: Annotated[
        bool, typer.Option("--round-trip", help="Times are full round trips, not half.")
    ] = False
    unit: Annotated[
        list[str] | None,
        typer.Option(
            metavar="UNIT",
            help="Unit of times (us) or sizes (B) of a CSV that has none; may be repeated.",
        ),
    ] = None


def calibrate(
    context: typer.Context,
    measured: Annotated[
        list[Path],
        typer.Argument(
            metavar="MEASURED...",
            help="A ping-pong: CSV bytes,time_us[,hops], or what osu_latency or IMB-MPI1 PingPong "
            "printed. Or collectives: CSV collective,algorithm,buffer_bytes,median_ns[,nodes,"
            "tasks_per_node].",
        ),
    ],
    collectives: CollectiveOptions,
    pingpong: PingPongOptions,
    out: Annotated[
        Path | None, typer.Option(help="TOML to write, for scenarios and --set FILE.toml.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Fit parameters of the model to measured ping-pongs or collectives."""
    from hopmap.simulator.measured.files import is_measured

    if out is not None and out.suffix != ".toml":
        raise typer.BadParameter(f"--out {out}: expected a name ending in .toml, as --set takes it")
    check_out(out, pingpong.plot)
    if len({is_measured(each) for each in measured}) > 1:
        raise typer.BadParameter("ping-pongs and collectives: expected files of one kind")
    if is_measured(measured[0]):
        check_options(context, "a fit to collectives", _names(CollectiveOptions))
        if not collectives.topology:
            raise typer.BadParameter("a fit to collectives requires --topology SPEC")
        _calibrate_to_collectives(measured, collectives, out, as_json)
    else:
        check_options(context, "a fit to ping-pongs", _names(PingPongOptions))
        if len(measured) > 1:
            raise typer.BadParameter(f"{len(measured)} files: expected one of ping-pongs")
        _calibrate_to_pingpong(measured[0], pingpong, out, as_json)
    if out is not None and not as_json:
        say(f"use it:  hopmap simulate ... --set {out}")


def _names(options: type[CollectiveOptions | PingPongOptions]) -> list[str]:
    return [each.name for each in fields(options)]


def _calibrate_to_collectives(
    measured: Sequence[Path], options: CollectiveOptions, out: Path | None, as_json: bool
) -> None:
    from hopmap.validation.validation import calibrate_collectives

    topology = options.topology or []
    with working("fitting") as progress:
        fit = calibrate_collectives(
            measured,
            topology,
            keys=options.fit or [],
            settings=settings_of(options.sets),
            alloc=options.alloc,
            ranks=options.ranks,
            progress=progress,
        )
    error, sentence = fit.stated_error()
    machines = " ".join(f"--topology {spec}" for spec in topology)
    _write_parameters(
        out,
        [f"hopmap calibrate {' '.join(map(str, measured))} {machines}", sentence],
        fit.settings,
        ""
        if error is None
        else "\n[validated]  # by measurement on these networks\n"
        f"topologies = {[str(spec) for spec in topology]!r}\n"
        f"error = {error!r}  # median of predictions from other calls\n",
    )
    if as_json:
        print_json(fit.to_dict())
        return
    rows = [
        (key, *(_show(key, each) for each in (value, *fit.fit.interval[key])))
        for key, value in fit.parameters.items()
    ]
    title = ", ".join(map(str, measured))
    print_table(("parameter", "value", "from", "to (95 %)"), rows, title=title)
    say()
    _print_errors(fit.errors(), fit.by_algorithm())
    say()
    say(sentence)
    if fit.undetermined:
        say(f"undetermined by these calls, left as set: {', '.join(fit.undetermined)}")
    if omitted := sum(fit.omitted.values()):
        reasons = ", ".join(f"{why} {calls}" for why, calls in fit.omitted.items())
        total = len(fit.measured) + omitted
        say(f"left out: {omitted} of {total} calls ({reasons})")
    if unexplained := fit.list_unexplained():
        say()
        print_table(
            ("cannot explain", "bytes", "predicted / measured"),
            [(f"{c} {a}", size, f"{ratio:.2f}") for c, a, size, ratio in unexplained],
        )
    say_written(out)


def _calibrate_to_pingpong(
    pingpong: Path, options: PingPongOptions, out: Path | None, as_json: bool
) -> None:
    from hopmap.api.simulation import calibrate
    from hopmap.traces.safety.atomic_files import replacing

    plot = options.plot
    check_picture(plot)
    with working("fitting"):
        fit = calibrate(
            pingpong,
            hops=options.hops,
            round_trip=options.round_trip,
            unit=options.unit or (),
        )
    _write_parameters(out, [f"hopmap calibrate {pingpong.name!r}", *fit.notes], fit.parameters)
    if plot is not None:
        from hopmap.validation.figures import calibration_figure

        with working("drawing"), replacing(plot) as partial:
            calibration_figure(fit.measured, fit, title=pingpong.name).savefig(partial, dpi=200)
    if as_json:
        print_json(fit.to_dict())
        return
    rows = [(key, _show(key, value)) for key, value in fit.parameters.items()]
    print_table(("parameter", "value"), rows, title=str(pingpong))
    say()
    print_table(
        ("bytes", "links", "measured", "fitted", "error", "by other sizes", "weight"),
        [
            (
                *(row["size"], row["hops"], show_seconds(row["time"]), show_seconds(row["fitted"])),
                *(_show_error(row[by], row["time"]) for by in ("fitted", "from_other_sizes")),
                f"{row['weight']:.2f}",
            )
            for row in fit.to_dict()["measurements"]
        ],
        left=0,
    )
    say()
    for note in fit.notes:
        say(note)
    say_written(out, plot)


def _show_error(predicted: float | None, time: float) -> str:
    return "-" if predicted is None else f"{100 * (predicted / time - 1):+.2f} %"


def _write_parameters(
    out: Path | None, notes: Iterable[str], settings: Mapping[str, object], rest: str = ""
) -> None:
    """Write a TOML file of parameters below notes, if one is asked for."""
    from hopmap.traces.safety.atomic_files import write_text

    if out is not None:
        lines = [f"# {note}" for note in notes]
        lines += ["[parameters]", *(f'"{key}" = {value!r}' for key, value in settings.items())]
        write_text(out, "\n".join(lines) + "\n" + rest)


def _show(key: str, value: float) -> str:
    """Write a fitted parameter for people."""
    if key.endswith("bandwidth"):
        return f"{show_bytes(value)}/s"
    if key.endswith("per_byte"):
        return f"{show_seconds(value * 1e6)}/MB"
    return f"{int(value)} B" if key == "eager_limit" else show_seconds(value)


def validate(
    measured: Annotated[
        list[Path],
        typer.Argument(
            metavar="MEASURED...",
            help="CSV collective,algorithm,buffer_bytes,median_ns[,nodes,tasks_per_node].",
        ),
    ],
    topology: Annotated[
        list[str],
        typer.Option("--topology", "-t", help="Machine of all files, or repeated, of each."),
    ],
    parameters: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="TOML with parameters, as calibrate writes it."),
    ] = None,
    alloc: Allocations = None,
    ranks: Ranks = 0,
    limit: Annotated[
        float,
        typer.Option(min=1, help="Most packets of a simulated call; larger calls are only listed."),
    ] = 2e7,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder for calls.parquet and validation.html."),
    ] = None,
    set_: Sets = None,
    as_json: AsJson = False,
) -> None:
    """Hold the model against measured collectives: errors by algorithm and size, choices."""
    from hopmap.validation.validation import CALLS, PAGE
    from hopmap.validation.validation import validate as held

    check_folder("--out", out)
    if out is not None:
        expect_free(*(out / name for name in (CALLS, PAGE)))
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
    written: Sequence[Path] = ()
    if out is not None:
        with working("drawing"):
            written = found.write(out)
    if as_json:
        print_json(found.to_dict())
        return
    _print_validation(found)
    say_written(*written)


def _print_validation(validation: Validation) -> None:
    """Print errors in all and by algorithm, what is not simulated, and how choices come out."""
    from hopmap.simulator.measured.errors import (
        CLASSES,
        agreement_of,
        by_algorithm,
        by_operation,
        choice_of,
        count_unknown,
        describe_order,
        error_of,
        order_of,
    )

    measured, prediction = validation.measured, validation.prediction
    errors = {"all": error_of(prediction.time, measured.time)}
    for sizes, (least, most) in CLASSES.items():
        of = (measured.size >= least) & (measured.size < most)
        errors[sizes] = error_of(prediction.time[of], measured.time[of])
    title = ", ".join(measured.files)
    operations = by_operation(measured, prediction)
    _print_errors(errors, by_algorithm(measured, prediction), title, operations)
    if left := count_unknown(measured, prediction):
        say()
        print_table(
            ("not simulated", "why", "calls"),
            [(f"{c} {a}", why, count) for (c, a, why), count in left.items()],
            left=2,
        )
    for note in validation.notes:
        say(note)
    say()
    choice, order = choice_of(measured, prediction), order_of(measured, prediction)
    say(
        f"fastest known algorithm: found in {choice.right} of {choice.cells} cells; one within 5 % "
        f"of it in {choice.within_5}"
    )
    say(f"order of algorithms at 1 MiB and above: {describe_order(order)}")
    if len(measured.files) > 1:
        say(f"that order in two files: {describe_order(agreement_of(measured, prediction))}")


def _print_errors(
    errors: Mapping[str, Error],
    groups: Sequence[Group],
    title: str = "",
    operations: Sequence[OfOperation] = (),
) -> None:
    """Print errors by name, of every operation and of every algorithm."""
    from hopmap.validation.validation import COLUMNS, error_cells

    rows = [(name, *error_cells(error)) for name, error in errors.items()]
    print_table(("error", *COLUMNS[1:]), rows, title=title)
    say()
    if operations:
        print_table(
            ("collective", "ranks", "blocks", *COLUMNS[1:]),
            [(o.collective, o.ranks, o.blocks, *error_cells(o.error)) for o in operations],
            left=1,
        )
        say()
    print_table(
        ("collective, algorithm", "sizes", *COLUMNS[1:]),
        [(f"{g.collective} {g.algorithm}", g.sizes, *error_cells(g.error)) for g in groups],
        left=2,
    )
