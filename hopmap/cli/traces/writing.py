"""Commands that write synthetic traffic and traces: generate, scale."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from hopmap.errors import choice

from ..console import say, warn, working
from ..options import AsJson, check_options, check_out
from .reading import print_facts, write_or_print

if TYPE_CHECKING:
    from hopmap.api.workload import WorkloadLike
    from hopmap.traces import Traffic

Out = Annotated[
    Path,
    typer.Option(
        help="A folder ending in .otf2, or traffic: .npz .mtx .csv .graph .grf; - is stdout, "
        "as .csv."
    ),
]


class Model(StrEnum):
    """Hypergraph model of a sparse matrix; see `traces.sparse`."""

    ROW_NET = "row-net"
    COLUMN_NET = "column-net"


@dataclass(frozen=True)
class Options:
    """What traffic is generated from; `KINDS` says which kind takes what."""

    nas_class: Annotated[str, typer.Option("--class", help="Problem class, S W A B C D E.")] = "S"
    ranks: Annotated[int, typer.Option(min=1, help="MPI processes.")] = 16
    steps: Annotated[
        int | None, typer.Option(min=1, help="Time steps, instead of the class's own.")
    ] = None
    flops: Annotated[
        str | None,
        typer.Option(
            help='Benchmarks: operations per second of a rank, like "2 Gflop/s"; default 1 '
            "Gflop/s. 0 means no computation."
        ),
    ] = None
    rate_from: Annotated[
        str | None,
        typer.Option(
            metavar="TRACE",
            help="Benchmarks: take the rate from this recorded run of the benchmark, of any class "
            "and number of ranks.",
        ),
    ] = None
    dims: Annotated[
        str | None,
        typer.Option(help="Patterns, stencil: ranks per dimension, x first, like 8x8."),
    ] = None
    size: Annotated[
        int, typer.Option("--bytes", min=0, help="Patterns, stencil: bytes of every message.")
    ] = 1
    stencil: Annotated[
        str | None,
        typer.Option(
            help="Stencil: 5pt, 7pt, 9pt, 27pt, star, box, edge_detection, component, hops, "
            "asymmetric, or vectors like 1:0/-1:0."
        ),
    ] = None
    periodic: Annotated[
        str,
        typer.Option(help="Stencil: periodic dimensions, like y, xz, all, or 010."),
    ] = "none"
    matrix: Annotated[
        Path | None, typer.Option(help="Spmv: the matrix, in MatrixMarket's format.")
    ] = None
    model: Annotated[Model, typer.Option(help="Spmv: what the hypergraph's nets are.")] = (
        Model.COLUMN_NET
    )
    seed: Annotated[int, typer.Option(min=0, help="Spmv: seed of the partition.")] = 0
    tp: Annotated[int, typer.Option(min=1, help="Training: ranks that share a tensor.")] = 1
    cp: Annotated[int, typer.Option(min=1, help="Training: ranks that share a sequence.")] = 1
    pp: Annotated[int, typer.Option(min=1, help="Training: stages of the pipeline.")] = 1
    dp: Annotated[int, typer.Option(min=1, help="Training: replicas.")] = 1
    ep: Annotated[
        int, typer.Option(min=1, help="Training: replicas that share a layer's experts.")
    ] = 1
    sizes: Annotated[
        str,
        typer.Option(
            help="Training: like model=175b,batch=1,microbatches=16 or layers=32,hidden=4096,"
            "experts=8, see docs/how-to/train-a-model.md."
        ),
    ] = "model=1.7b"


class Made(NamedTuple):
    """What is to be written: its name, the function that makes it, and what else is said of it."""

    name: str
    make: Callable[[], WorkloadLike]
    facts: Mapping[str, Any] = {}


class Kind(NamedTuple):
    """A kind of traffic: the options that it takes, and what it is with them, as an archive or not.

    `compiles` is whether making it needs the compiler.
    """

    options: tuple[str, ...]
    made: Callable[[str, Options, bool], Made]
    compiles: bool = True


def generate(
    context: typer.Context,
    benchmark: Annotated[
        str,
        typer.Argument(
            help="A NAS Parallel Benchmark, lu or lu.S.16, see: list benchmarks; a synthetic "
            "pattern: uniform, transpose, tornado, complement, neighbour, bit_reversal, shuffle; "
            "stencil, on a grid; spmv, of a --matrix; or training, a step of it."
        ),
    ],
    out: Out,
    options: Options,
    as_json: AsJson = False,
) -> None:
    """Generate traffic or a trace: a NAS benchmark's, a pattern's, of y = A x, of training."""
    from hopmap.traces.nas.benchmarks import BENCHMARKS
    from hopmap.traces.patterns.synthetic import PATTERNS
    from hopmap.traces.sources import is_nas_name

    check_out(out, folder=out.suffix == ".otf2")
    kinds = {**dict.fromkeys(BENCHMARKS, NAS), **dict.fromkeys(PATTERNS, PATTERN), **OTHERS}
    if is_nas_name(benchmark):
        benchmark, options = _split(context, benchmark, options)
    kind = kinds.get(benchmark.lower() if benchmark.lower() in BENCHMARKS else benchmark)
    if kind is None:
        raise typer.BadParameter(choice("unknown benchmark", benchmark, kinds))
    check_options(context, benchmark, kind.options)
    made = kind.made(benchmark, options, out.suffix == ".otf2")
    traffic = _write(made, f"generating {made.name}", out, as_json, compiles=kind.compiles)
    if kind is NAS and not traffic.pairs and out.suffix != ".otf2":
        warn(
            f"{made.name}: no point-to-point messages: hopmap matrix {made.name} --collectives "
            f"expand --out {out} counts collectives"
        )


def _split(context: typer.Context, name: str, options: Options) -> tuple[str, Options]:
    """Split "lu.S.16" into its benchmark, and options with its class and ranks."""
    for option, flag in (("nas_class", "--class"), ("ranks", "--ranks")):
        source = context.get_parameter_source(option)
        if source is not None and source.name == "COMMANDLINE":
            raise typer.BadParameter(f"{flag} and {name} are mutually exclusive")
    benchmark, nas_class, ranks = name.split(".")
    return benchmark, replace(options, nas_class=nas_class.upper(), ranks=int(ranks))


def scale(
    traces: Annotated[
        list[str],
        typer.Argument(
            metavar="TRACE...",
            help="One program at one or more rank counts: OTF2 archives, or benchmarks like "
            "lu.C.64.",
        ),
    ],
    ranks: Annotated[int, typer.Option(min=2, help="MPI processes to extrapolate to.")],
    out: Out,
    weak: Annotated[
        bool,
        typer.Option("--weak", help="One TRACE: each rank sends the same bytes at more ranks."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Extrapolate a program to more ranks, exactly or not at all.

    scaled:RANKS,TRACE,... is the same program in place of any trace, loops kept.
    """
    from hopmap.api.input_kinds import TRACE, check_kind
    from hopmap.api.workload import Workload
    from hopmap.traces.sources import open_source

    check_out(out, folder=out.suffix == ".otf2")
    for trace in traces:
        check_kind(TRACE, trace)
    source: Any = open_source(f"scaled:{ranks},{'weak,' * weak}{','.join(traces)}")
    facts: dict[str, Any] = {}

    def extrapolate() -> Workload:
        found = source.extrapolated
        facts.update(grids=[list(dims) for dims in found.grids], checked=found.checked)
        return Workload(source, collectives="ignore")

    made = Made(source.name, extrapolate, facts)
    _write(made, f"extrapolating to {ranks} ranks", out, as_json)
    if as_json or str(out) == "-":
        return
    say("grids:   " + ", ".join("x".join(map(str, dims)) for dims in facts["grids"]))
    if facts["checked"]:
        say("checked: the largest recording is what the others predict")
    else:
        say("not checked: a third rank count would be; every step fits those that there are")


def _write(made: Made, label: str, out: Path, as_json: bool, *, compiles: bool = True) -> Traffic:
    """Make something, write it, and print what it is."""
    from hopmap.traces.formats.files import written_suffix

    if str(out) != "-":
        written_suffix(out, ".otf2")
    with working(label, compiles=compiles):
        begin = time.perf_counter()
        traffic = write_or_print(made.make(), out)
        facts = traffic.to_dict() | {"wall_seconds": time.perf_counter() - begin}
    print_facts(made.name, {**facts, **made.facts, "out": str(out)}, as_json)
    return traffic


def _benchmark(benchmark: str, options: Options, archive: bool) -> Made:
    from hopmap.traces.nas.benchmarks import nas_trace, nas_traffic

    name = f"{benchmark}.{options.nas_class}.{options.ranks}"
    rate, fit = _rate(benchmark, options, archive)

    def make() -> WorkloadLike:
        if archive:
            return nas_trace(name, steps=options.steps, flops=rate)
        return nas_traffic(name, steps=options.steps)

    return Made(name, make, fit)


def _rate(benchmark: str, options: Options, archive: bool) -> tuple[float, dict[str, Any]]:
    """Operations per second to generate a benchmark with, and what there is to say of them."""
    from hopmap.units import UnitError, parse_quantity

    flops, rate_from = options.flops, options.rate_from
    if flops is None and rate_from is None:
        return 1e9, {}
    option = "--flops" if rate_from is None else "--rate-from"
    if flops is not None and rate_from is not None:
        raise typer.BadParameter("--flops and --rate-from are mutually exclusive")
    if not archive:
        raise typer.BadParameter(f"{option} requires --out X.otf2: traffic has no computation")
    if flops is not None:
        try:
            return parse_quantity(flops, "flop/s"), {}
        except UnitError as error:
            raise typer.BadParameter(f"--flops {error}") from None
    from hopmap.api.input_kinds import TRACE, check_kind
    from hopmap.simulator.programs.computation import fit_rate
    from hopmap.traces.sources import open_source

    assert rate_from is not None
    check_kind(TRACE, rate_from)
    source = open_source(rate_from)
    with working(f"reading {source.name}"):
        fit = fit_rate(source.trace(), benchmark)
    return fit.flops, {"rate": fit.to_dict()}


def _pattern(pattern: str, options: Options, _: bool) -> Made:
    from hopmap.traces.patterns.synthetic import synthetic_traffic

    dims = options.dims
    if dims is None:
        raise typer.BadParameter("expected --dims, ranks per dimension, like 8x8")
    if not re.fullmatch(r"\d{1,9}(x\d{1,9})*", dims):
        raise typer.BadParameter(f"--dims {dims}: expected ranks per dimension, like 8x8")
    sizes = [int(d) for d in dims.split("x")]
    return Made(f"{pattern}.{dims}", lambda: synthetic_traffic(pattern, sizes, size=options.size))


def _stencil(_: str, options: Options, __: bool) -> Made:
    from hopmap.traces.sources import open_source

    dims, stencil = options.dims, options.stencil
    if dims is None or stencil is None:
        raise typer.BadParameter("expected --dims like 12x11x8 and --stencil like 7pt")
    text = f"stencil:{dims},{stencil},periodic={options.periodic},bytes={options.size}"
    source = open_source(text)
    return Made(f"stencil {stencil}.{dims}", lambda: source)


def _spmv(_: str, options: Options, __: bool) -> Made:
    from hopmap.traces.patterns.spmv import read_pattern, spmv_traffic

    matrix, model = options.matrix, options.model
    if matrix is None:
        raise typer.BadParameter("expected --matrix FILE, a matrix in MatrixMarket's format")

    def make() -> Traffic:
        return spmv_traffic(read_pattern(matrix), options.ranks, model.value, seed=options.seed)

    return Made(f"spmv of {matrix.name}, {model}", make)


def _training(_: str, options: Options, __: bool) -> Made:
    from hopmap.api.workload import Workload
    from hopmap.traces.sources import open_source

    spread = ",".join(f"{key}={getattr(options, key)}" for key in ("tp", "cp", "pp", "dp", "ep"))
    source = open_source(f"training:{options.sizes},{spread}")
    return Made(source.name, lambda: Workload(source, collectives="expand"))


NAS = Kind(("nas_class", "ranks", "steps", "flops", "rate_from"), _benchmark)
PATTERN = Kind(("dims", "size"), _pattern, compiles=False)
OTHERS = {
    "stencil": Kind(("dims", "size", "stencil", "periodic"), _stencil, compiles=False),
    "spmv": Kind(("matrix", "ranks", "model", "seed"), _spmv),
    "training": Kind(("tp", "cp", "pp", "dp", "ep", "sizes"), _training),
}
