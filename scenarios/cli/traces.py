"""Commands on traces and traffic: generate, info, matrix."""

from __future__ import annotations

import re
import time
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hopmap.units import show_bytes, show_seconds

from .arguments import (
    Algorithms,
    AsJson,
    Collectives,
    CollectivesOption,
    TraceOrTraffic,
    check_options,
    check_out,
    check_picture,
    settings_given,
)
from .console import (
    chosen_rows,
    left_out_lines,
    print_json,
    print_table,
    say,
    warn,
    warn_of,
    working,
)

if TYPE_CHECKING:
    from hopmap.progress import Progress
    from hopmap.traces import Traffic
    from hopmap.traces.sources import Source


# What each kind of traffic is generated from, beside --out and --json.
OF_BENCHMARKS = ("nas_class", "ranks", "steps", "flops", "rate_from")
OF_PATTERNS = ("dims", "size")
OF_STENCILS = (*OF_PATTERNS, "stencil", "periodic")
OF_SPMV = ("matrix", "ranks", "model", "seed")


class Model(StrEnum):
    """Hypergraph model of a sparse matrix; see `traces.sparse`."""

    ROW_NET = "row-net"
    COLUMN_NET = "column-net"


def generate(
    context: typer.Context,
    benchmark: Annotated[
        str,
        typer.Argument(
            help="A NAS Parallel Benchmark, see: list benchmarks; a synthetic pattern: uniform, "
            "transpose, tornado, complement, neighbour, bit_reversal, shuffle; stencil, on a grid; "
            "or spmv, of a --matrix."
        ),
    ],
    out: Annotated[
        Path, typer.Option(help="A folder ending in .otf2, or traffic: .npz .mtx .csv .graph .grf.")
    ],
    nas_class: Annotated[str, typer.Option("--class", help="Problem class, S W A B C D E.")] = "S",
    ranks: Annotated[int, typer.Option(min=1, help="MPI processes.")] = 16,
    steps: Annotated[
        int | None, typer.Option(min=1, help="Time steps, instead of the class's own.")
    ] = None,
    flops: Annotated[
        str | None,
        typer.Option(
            help='Of a benchmark\'s trace: operations a second of a rank, like "2 Gflop/s", which '
            "is 1 Gflop/s when left out. 0 is no computation."
        ),
    ] = None,
    rate_from: Annotated[
        str | None,
        typer.Option(
            metavar="TRACE",
            help="Of a benchmark's trace: a recorded run of it, of any class and ranks, that had "
            "the rate to take.",
        ),
    ] = None,
    dims: Annotated[
        str | None,
        typer.Option(help="Of a pattern or stencil: ranks per dimension, x first, like 8x8."),
    ] = None,
    size: Annotated[
        int, typer.Option("--bytes", min=0, help="Of a pattern or stencil: bytes of every message.")
    ] = 1,
    stencil: Annotated[
        str | None,
        typer.Option(
            help="Of stencil: 5pt, 7pt, 9pt, 27pt, star, box, edge_detection, component, hops, "
            "asymmetric, or vectors like 1:0/-1:0."
        ),
    ] = None,
    periodic: Annotated[
        str,
        typer.Option(help="Of stencil: periodic dimensions, like y, xz, all, or 010."),
    ] = "none",
    matrix: Annotated[
        Path | None, typer.Option(help="Of spmv: the matrix, in MatrixMarket's format.")
    ] = None,
    model: Annotated[
        Model, typer.Option(help="Of spmv: what the hypergraph's nets are.")
    ] = Model.COLUMN_NET,
    seed: Annotated[int, typer.Option(min=0, help="Of spmv: seed of the partition.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Generate traffic: a NAS benchmark's, or its trace; a pattern's; a stencil's; of y = A x."""
    from hopmap.simulator.parameters.keys import unknown
    from hopmap.traces.formats.files import save_traffic
    from hopmap.traces.nas.benchmarks import BENCHMARKS, nas_trace, nas_traffic
    from hopmap.traces.patterns.synthetic import PATTERNS

    check_out(out, folder=out.suffix == ".otf2")
    has: dict[str, tuple[str, ...]] = {
        **dict.fromkeys(BENCHMARKS, OF_BENCHMARKS),
        **dict.fromkeys(PATTERNS, OF_PATTERNS),
        "stencil": OF_STENCILS,
        "spmv": OF_SPMV,
    }
    kind = benchmark.lower() if benchmark.lower() in BENCHMARKS else benchmark
    if kind not in has:
        raise typer.BadParameter(unknown("benchmark", benchmark, has))
    check_options(context, benchmark, has[kind])
    if benchmark == "spmv":
        _generate_spmv(matrix, ranks, model, seed, out, as_json)
        return
    if benchmark == "stencil":
        _generate_stencil(dims, stencil, periodic, size, out, as_json)
        return
    if benchmark in PATTERNS:
        _generate_pattern(benchmark, dims, size, out, as_json)
        return
    name = f"{benchmark}.{nas_class}.{ranks}"
    rate, fit = _rate(benchmark, flops, rate_from, out)
    with working(f"generating {name}"):
        begin = time.perf_counter()
        if out.suffix == ".otf2":
            from hopmap.traces import traffic_of
            from hopmap.traces.otf2.write import write_trace

            trace = nas_trace(name, steps=steps, flops=rate)
            traffic = traffic_of(trace)
            write_trace(trace, out)
        else:
            traffic = nas_traffic(name, steps=steps)
            save_traffic(out, traffic)
        facts = _traffic_facts(traffic) | {"wall_seconds": time.perf_counter() - begin}
    _print_facts(name, facts | fit | {"out": str(out)}, as_json)
    if not traffic.pairs and out.suffix != ".otf2":
        warn(
            f"{name}: no point-to-point messages: hopmap matrix {name} --collectives expand "
            f"--out {out} counts collectives"
        )


def _rate(
    benchmark: str, flops: str | None, rate_from: str | None, out: Path
) -> tuple[float, dict[str, Any]]:
    """Operations per second to generate a benchmark with, and what there is to say of them."""
    from hopmap.units import UnitError, parse_quantity

    if flops is None and rate_from is None:
        return 1e9, {}
    option = "--flops" if rate_from is None else "--rate-from"
    if flops is not None and rate_from is not None:
        raise typer.BadParameter("--flops, --rate-from: expected one of them")
    if out.suffix != ".otf2":
        raise typer.BadParameter(f"{option}: traffic has no computation: expected --out X.otf2")
    if flops is not None:
        try:
            return parse_quantity(flops, "flop/s"), {}
        except UnitError as error:
            raise typer.BadParameter(f"--flops {error}") from None
    from hopmap.simulator.programs.nas_rate import fit_rate
    from hopmap.traces.sources import open_source

    assert rate_from is not None
    source = open_source(rate_from)
    with working(f"reading {source.name}"):
        fit = fit_rate(source.trace(), benchmark)
    return fit.flops, {"rate": fit.to_dict()}


def _generate_pattern(pattern: str, dims: str | None, size: int, out: Path, as_json: bool) -> None:
    from hopmap.traces.formats.files import save_traffic
    from hopmap.traces.patterns.synthetic import synthetic_traffic

    if dims is None:
        raise typer.BadParameter("expected --dims, ranks per dimension, like 8x8")
    if not re.fullmatch(r"\d{1,9}(x\d{1,9})*", dims):
        raise typer.BadParameter(f"--dims {dims}: expected ranks per dimension, like 8x8")
    begin = time.perf_counter()
    traffic = synthetic_traffic(pattern, [int(d) for d in dims.split("x")], size=size)
    save_traffic(out, traffic)
    facts = _traffic_facts(traffic) | {"wall_seconds": time.perf_counter() - begin}
    _print_facts(f"{pattern}.{dims}", facts | {"out": str(out)}, as_json)


def _generate_stencil(
    dims: str | None, stencil: str | None, periodic: str, size: int, out: Path, as_json: bool
) -> None:
    from hopmap.traces.formats.files import save_traffic
    from hopmap.traces.sources import STENCIL, open_source

    if dims is None or stencil is None:
        raise typer.BadParameter("expected --dims like 12x11x8 and --stencil like 7pt")
    source = open_source(f"{STENCIL}{dims},{stencil},periodic={periodic},bytes={size}")
    begin = time.perf_counter()
    traffic = source.traffic()
    save_traffic(out, traffic)
    facts = _traffic_facts(traffic) | {"wall_seconds": time.perf_counter() - begin}
    _print_facts(f"stencil {stencil}.{dims}", facts | {"out": str(out)}, as_json)


def _generate_spmv(
    matrix: Path | None, ranks: int, model: Model, seed: int, out: Path, as_json: bool
) -> None:
    from hopmap.traces.formats.files import save_traffic
    from hopmap.traces.patterns.spmv import read_pattern, spmv_traffic

    if matrix is None:
        raise typer.BadParameter("expected --matrix FILE, a matrix in MatrixMarket's format")
    name = f"spmv of {matrix.name}, {model}"
    with working(f"generating {name}"):
        begin = time.perf_counter()
        traffic = spmv_traffic(read_pattern(matrix), ranks, model.value, seed=seed)
        save_traffic(out, traffic)
        facts = _traffic_facts(traffic) | {"wall_seconds": time.perf_counter() - begin}
    _print_facts(name, facts | {"out": str(out)}, as_json)


def info(trace: TraceOrTraffic, as_json: AsJson = False) -> None:
    """Say what is in a trace or a traffic file."""
    source = _opened(trace)
    with working(f"reading {source.name}") as progress:
        facts, _ = _read(source, progress)
    _print_facts(source.name, facts, as_json)


def matrix(
    trace: TraceOrTraffic,
    out: Annotated[
        Path | None, typer.Option(help="Traffic: .npz .mtx .csv .graph .grf; - is stdout, as .csv.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Picture of the matrix: .svg .png .pdf.")
    ] = None,
    collectives: CollectivesOption = Collectives.IGNORE,
    settings: Algorithms = None,
    as_json: AsJson = False,
) -> None:
    """Reduce a trace to its traffic: point-to-point, or with the messages of collectives."""
    if out is None and plot is None and not as_json:
        raise typer.BadParameter("expected --out FILE, --plot FILE or --json")
    check_picture(plot)
    check_out(out, plot)
    from hopmap.scenarios.given import algorithms_of, warn_if_silent
    from hopmap.simulator.programs.from_source import check_collectives, traffic_of_source
    from hopmap.traces.formats.files import save_traffic, traffic_text

    algorithms = algorithms_of(settings_given(settings))
    check_collectives(collectives, algorithms)
    source = _opened(trace)
    with working(f"reading {source.name}") as progress:
        facts, traffic = _read(source, progress)
        if collectives is Collectives.EXPAND:
            begin = time.perf_counter()
            traffic, chosen, _, notes = traffic_of_source(source, collectives, algorithms)
            facts |= _traffic_facts(traffic) | {"algorithms": chosen, "notes": notes}
            facts["wall_seconds"] += time.perf_counter() - begin
        if str(out) == "-":
            say(traffic_text(traffic).rstrip("\n"))
        elif out is not None:
            save_traffic(out, traffic)
            facts["out"] = str(out)
        if plot is not None:
            _plot(traffic, plot, source.name)
            facts["plot"] = str(plot)
    if collectives is Collectives.IGNORE:
        left_out = facts["collective_bytes"] or 0
        warn_if_silent(source.name, traffic, left_out, has_collectives=source.has_collectives)
    if str(out) != "-":
        _print_facts(source.name, facts, as_json)


def _opened(trace: str) -> Source:
    """Say what a trace argument means; see `open_source`."""
    from hopmap.scenarios.mistaken import TRACE, expect
    from hopmap.traces.sources import open_source

    expect(TRACE, trace)
    return open_source(trace)


def _read(source: Source, progress: Progress) -> tuple[dict[str, Any], Traffic]:
    """Read a source's traffic, with what else is known of it."""
    from hopmap.simulator.programs.from_source import (
        left_out_of_archive,
        left_out_of_recording,
        program_of_source,
        traffic_of_source,
    )
    from hopmap.simulator.programs.left_out import left_out
    from hopmap.traces.summary import summarize

    if source.kind == "archive":
        from hopmap.traces.otf2 import read_kernels
        from hopmap.traces.otf2.files import find_archive
        from hopmap.traces.otf2.read import read_summary
        from hopmap.traces.pair_counts import companion_of

        assert source.path is not None
        read_kernels.time_callbacks(), read_kernels.total_callbacks()  # compiled here, untimed
        begin = time.perf_counter()
        read = read_summary(source.path, progress=progress)
        seconds = time.perf_counter() - begin
        counts = companion_of(find_archive(source.path))
        beside: dict[str, Any] = {"counts": str(counts)} if counts.is_file() else {}
        beside["left_out"] = left_out_of_archive(source.path, read)
        return read.to_dict() | beside | {"wall_seconds": seconds}, read.traffic
    begin = time.perf_counter()
    if source.kind == "recording":
        trace = source.trace()
        summary = summarize(trace)
        seconds = time.perf_counter() - begin
        told: dict[str, Any] = {"left_out": left_out_of_recording(trace)}
        return summary.to_dict() | told | {"wall_seconds": seconds}, summary.traffic
    if source.kind == "schedule":
        program = program_of_source(source).program
        traffic = program.traffic()
        seconds = time.perf_counter() - begin
        told = {"events": source.schedule().operations, "collectives": {}, "ignored": {}}
        told |= {"left_out": left_out(program), "collective_bytes": None, "duration": None}
        return _traffic_facts(traffic) | told | {"wall_seconds": seconds}, traffic
    traffic = traffic_of_source(source).traffic
    seconds = time.perf_counter() - begin
    unknown: dict[str, Any] = dict.fromkeys(("events", "collective_bytes", "duration"))
    unknown |= {"collectives": {}, "ignored": {}, "left_out": []}
    return _traffic_facts(traffic) | unknown | {"wall_seconds": seconds}, traffic


def _traffic_facts(traffic: Traffic) -> dict[str, Any]:
    return {
        "ranks": traffic.ranks,
        "messages": int(traffic.messages.sum()),
        "bytes": int(traffic.bytes.sum()),
        "pairs": traffic.pairs,
    }


def _plot(traffic: Traffic, path: Path, title: str) -> None:
    from hopmap.scenarios.figures.spy import spy_plot
    from hopmap.traces.safety.atomic_files import replacing

    with replacing(path) as partial:
        spy_plot(traffic, title=title).savefig(partial, dpi=200)


def _print_facts(name: str, facts: dict[str, Any], as_json: bool) -> None:
    left_out = facts.get("left_out", [])
    if as_json:
        print_json(facts | {"left_out": [entry.to_dict() for entry in left_out]})
        return
    warn_of(name, left_out)
    rows: list[tuple[str, object]] = [
        (key, facts[key])
        for key in ("ranks", "events", "messages", "pairs")
        if facts.get(key) is not None
    ]
    rows.append(("bytes", f"{facts['bytes']:,} ({show_bytes(facts['bytes'])})"))
    if facts.get("duration") is not None:
        rows.append(("duration", show_seconds(facts["duration"])))
    rows += [(f"{op} calls", calls) for op, calls in facts.get("collectives", {}).items()]
    if facts.get("collective_bytes"):
        rows.append(("sent in collectives", show_bytes(facts["collective_bytes"])))
    if "counts" in facts:
        rows.append(("pairs of alltoallv, in", facts["counts"]))
    rows += _rate_rows(facts.get("rate"))
    if "algorithms" in facts:
        rows += chosen_rows(facts["algorithms"])
    rows.append(("took", show_seconds(facts["wall_seconds"])))
    print_table(("", name), rows)
    for line in left_out_lines(left_out, facts.get("notes", {})):
        say(line)
    for key in ("out", "plot"):
        if key in facts:
            say(f"written: {facts[key]}")


def _rate_rows(rate: dict[str, Any] | None) -> list[tuple[str, object]]:
    """Say what a fitted rate is, and how well it fits."""
    if rate is None:
        return []
    spread = f"{rate['lowest']:.3g} to {rate['highest']:.3g}, +-{100 * rate['deviation']:.2g} %"
    return [
        (f"operations/s, from {rate['of']}", f"{rate['flops']:.4g}"),
        ("  by rank", spread),
        ("  computing, all ranks", show_seconds(rate["seconds"])),
        ("  left out", show_seconds(rate["left_out_seconds"])),
    ]
