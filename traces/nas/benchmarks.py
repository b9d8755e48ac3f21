"""NAS Parallel Benchmarks by name: "lu.C.64" is class C on 64 ranks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hopmap.plugins import Table
from hopmap.traces.folded import Folded
from hopmap.traces.sources import BENCHMARK_NAME, Source
from hopmap.traces.trace import Trace, TraceError
from hopmap.traces.traffic import MOST_RANKS, Traffic

from .skeleton import Benchmark

BENCHMARKS: Table[Benchmark[Any]] = Table(
    __package__,
    {
        "lu": "lu:LU",
        "cg": "cg:CG",
        "mg": "mg:MG",
        "is": "ep_ft_is:IS",
        "ep": "ep_ft_is:EP",
        "sp": "sp_bt:SP_BENCHMARK",
        "bt": "sp_bt:BT_BENCHMARK",
        "ft": "ep_ft_is:FT",
    },
)


def nas_traffic(name: str, *, steps: int | None = None) -> Traffic:
    """Traffic of the benchmark "NAME.CLASS.RANKS", by formula; `steps` replace the class's own."""
    benchmark, nas_class, ranks = _split(name)
    return benchmark.traffic(nas_class, ranks, steps=steps)


def nas_trace(name: str, *, steps: int | None = None, flops: float = 1e9) -> Trace:
    """Full program of the benchmark so named; see `nas_traffic` and the benchmark's own file.

    `flops` are operations per second of one rank, as NPB counts them, see `skeleton`.
    """
    benchmark, nas_class, ranks = _split(name)
    return benchmark.trace(nas_class, ranks, steps=steps, flops=flops)


def nas_folded(name: str, *, steps: int | None = None, flops: float = 1e9) -> Folded:
    """Full program of the benchmark so named, its repeated parts as loops; see `nas_trace`."""
    benchmark, nas_class, ranks = _split(name)
    return benchmark.folded(nas_class, ranks, steps=steps, flops=flops)


def _split(name: str) -> tuple[Benchmark[Any], str, int]:
    match = BENCHMARK_NAME.fullmatch(name)
    if match is None:
        raise TraceError(f"benchmark {name!r}: expected name.class.ranks, like lu.C.64")
    benchmark = match[1].lower()
    if benchmark not in BENCHMARKS:
        raise TraceError(
            f"benchmark {name!r}: no generator for {benchmark!r}: expected one of "
            f"{', '.join(BENCHMARKS)}"
        )
    if len(match[3]) > 9 or int(match[3]) > MOST_RANKS:
        raise TraceError(f"benchmark {name!r}: {match[3]} ranks: expected at most {MOST_RANKS}")
    return BENCHMARKS[benchmark], match[2].upper(), int(match[3])


@dataclass(frozen=True)
class NasSource(Source):
    """A benchmark, generated; its ranks compute at a rate that is assumed."""

    kind = "benchmark"
    has_steps = True
    assumes_rate = True
    steps: int | None = None

    def with_steps(self, steps: int) -> NasSource:
        """Return it with other time steps than all of its class."""
        return replace(self, steps=steps)

    def traffic(self) -> Traffic:
        """Compute who sends how much to whom, in all steps."""
        return nas_traffic(self.name)

    def calls(self) -> Folded:
        """Compute every call, in loops."""
        return nas_folded(self.name, steps=self.steps)

    def trace(self) -> Trace:
        """Compute every call, one after the other."""
        return nas_trace(self.name, steps=self.steps)


def open_benchmark(text: str, _: Path | None) -> NasSource:
    """Return the source that a benchmark's name is."""
    benchmark, ranks = text.split(".")[::2]
    if benchmark.lower() not in BENCHMARKS:
        raise TraceError(
            f"{text}: {benchmark} cannot be generated: expected one of "
            f"{', '.join(BENCHMARKS)}, or a recorded trace"
        )
    found, nas_class, number = _split(text)
    found.problem(nas_class, number, None)
    return NasSource(f"{benchmark.lower()}.{nas_class}.{ranks}")
