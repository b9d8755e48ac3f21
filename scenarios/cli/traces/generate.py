"""The command generate: traffic and traces that nobody recorded."""

from __future__ import annotations

import re
import time
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from hopmap.errors import choice

from ..checks import check_options, check_out
from ..console import warn, working
from ..options import AsJson
from .reading import print_facts, put_traffic, traffic_facts

# What each kind of traffic is generated from, beside --out and --json.
OF_BENCHMARKS = ("nas_class", "ranks", "steps", "flops", "rate_from")
OF_PATTERNS = ("dims", "size")
OF_STENCILS = (*OF_PATTERNS, "stencil", "periodic")
OF_SPMV = ("matrix", "ranks", "model", "seed")
OF_TRAINING = ("tp", "pp", "dp", "ep", "sizes")


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
            "spmv, of a --matrix; or training, a step of it."
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            help="A folder ending in .otf2, or traffic: .npz .mtx .csv .graph .grf; - is stdout, "
            "as .csv."
        ),
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
    tp: Annotated[int, typer.Option(min=1, help="Of training: ranks that share a tensor.")] = 1,
    pp: Annotated[int, typer.Option(min=1, help="Of training: stages of the pipeline.")] = 1,
    dp: Annotated[int, typer.Option(min=1, help="Of training: replicas.")] = 1,
    ep: Annotated[
        int, typer.Option(min=1, help="Of training: replicas that share a layer's experts.")
    ] = 1,
    sizes: Annotated[
        str,
        typer.Option(
            help="Of training: like model=175b,batch=1,microbatches=16 or layers=32,hidden=4096,"
            "experts=8, see docs/GUIDES."
        ),
    ] = "model=1.7b",
    as_json: AsJson = False,
) -> None:
    """Generate traffic or a trace: a NAS benchmark's, a pattern's, of y = A x, of training."""
    from hopmap.traces.nas.benchmarks import BENCHMARKS, nas_trace, nas_traffic
    from hopmap.traces.patterns.synthetic import PATTERNS

    check_out(out, folder=out.suffix == ".otf2")
    has: dict[str, tuple[str, ...]] = {
        **dict.fromkeys(BENCHMARKS, OF_BENCHMARKS),
        **dict.fromkeys(PATTERNS, OF_PATTERNS),
        "stencil": OF_STENCILS,
        "spmv": OF_SPMV,
        "training": OF_TRAINING,
    }
    kind = benchmark.lower() if benchmark.lower() in BENCHMARKS else benchmark
    if kind not in has:
        raise typer.BadParameter(choice("unknown benchmark", benchmark, has))
    check_options(context, benchmark, has[kind])
    if benchmark == "training":
        _generate_training(f"{sizes},tp={tp},pp={pp},dp={dp},ep={ep}", out, as_json)
        return
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
            put_traffic(out, traffic)
        facts = traffic_facts(traffic) | {"wall_seconds": time.perf_counter() - begin}
    print_facts(name, facts | fit | {"out": str(out)}, as_json)
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
    from hopmap.traces.patterns.synthetic import synthetic_traffic

    if dims is None:
        raise typer.BadParameter("expected --dims, ranks per dimension, like 8x8")
    if not re.fullmatch(r"\d{1,9}(x\d{1,9})*", dims):
        raise typer.BadParameter(f"--dims {dims}: expected ranks per dimension, like 8x8")
    begin = time.perf_counter()
    traffic = synthetic_traffic(pattern, [int(d) for d in dims.split("x")], size=size)
    put_traffic(out, traffic)
    facts = traffic_facts(traffic) | {"wall_seconds": time.perf_counter() - begin}
    print_facts(f"{pattern}.{dims}", facts | {"out": str(out)}, as_json)


def _generate_stencil(
    dims: str | None, stencil: str | None, periodic: str, size: int, out: Path, as_json: bool
) -> None:
    from hopmap.traces.sources import open_source

    if dims is None or stencil is None:
        raise typer.BadParameter("expected --dims like 12x11x8 and --stencil like 7pt")
    source = open_source(f"stencil:{dims},{stencil},periodic={periodic},bytes={size}")
    begin = time.perf_counter()
    traffic = source.traffic()
    put_traffic(out, traffic)
    facts = traffic_facts(traffic) | {"wall_seconds": time.perf_counter() - begin}
    print_facts(f"stencil {stencil}.{dims}", facts | {"out": str(out)}, as_json)


def _generate_spmv(
    matrix: Path | None, ranks: int, model: Model, seed: int, out: Path, as_json: bool
) -> None:
    from hopmap.traces.patterns.spmv import read_pattern, spmv_traffic

    if matrix is None:
        raise typer.BadParameter("expected --matrix FILE, a matrix in MatrixMarket's format")
    name = f"spmv of {matrix.name}, {model}"
    with working(f"generating {name}"):
        begin = time.perf_counter()
        traffic = spmv_traffic(read_pattern(matrix), ranks, model.value, seed=seed)
        put_traffic(out, traffic)
        facts = traffic_facts(traffic) | {"wall_seconds": time.perf_counter() - begin}
    print_facts(name, facts | {"out": str(out)}, as_json)


def _generate_training(sizes: str, out: Path, as_json: bool) -> None:
    from hopmap.scenarios.workload import Workload
    from hopmap.traces import traffic_of
    from hopmap.traces.otf2.write import write_trace
    from hopmap.traces.sources import open_source

    source = open_source(f"training:{sizes}")
    with working("generating"):
        begin = time.perf_counter()
        if out.suffix == ".otf2":
            trace = source.trace()
            traffic = traffic_of(trace)
            write_trace(trace, out)
        else:
            traffic = Workload(source, collectives="expand").sent().traffic
            put_traffic(out, traffic)
        facts = traffic_facts(traffic) | {"wall_seconds": time.perf_counter() - begin}
    print_facts(source.name, facts | {"out": str(out)}, as_json)
