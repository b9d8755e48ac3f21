"""NAS Parallel Benchmarks by name: "lu.C.64" is class C on 64 ranks."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from . import nas_bt, nas_cg, nas_ep, nas_ft, nas_is, nas_lu, nas_mg, nas_sp
from .folded import Folded
from .nas_multipartition import multipartition
from .trace import Trace, TraceError
from .traffic import MOST_RANKS, Traffic


class Benchmark(NamedTuple):
    """How to generate one benchmark, for a class and a number of ranks; `check` raises at once."""

    check: Callable[..., object]
    traffic: Callable[..., Traffic]
    trace: Callable[..., Trace]
    folded: Callable[..., Folded]


BENCHMARKS = {
    "lu": Benchmark(nas_lu.lu_problem, nas_lu.lu_traffic, nas_lu.lu_trace, nas_lu.lu_folded),
    "cg": Benchmark(nas_cg.cg_problem, nas_cg.cg_traffic, nas_cg.cg_trace, nas_cg.cg_folded),
    "mg": Benchmark(nas_mg.mg_problem, nas_mg.mg_traffic, nas_mg.mg_trace, nas_mg.mg_folded),
    "is": Benchmark(nas_is.is_problem, nas_is.is_traffic, nas_is.is_trace, nas_is.is_folded),
    "ep": Benchmark(nas_ep.ep_batches, nas_ep.ep_traffic, nas_ep.ep_trace, nas_ep.ep_folded),
    "sp": Benchmark(
        partial(multipartition, nas_sp.SP), nas_sp.sp_traffic, nas_sp.sp_trace, nas_sp.sp_folded
    ),
    "bt": Benchmark(
        partial(multipartition, nas_bt.BT), nas_bt.bt_traffic, nas_bt.bt_trace, nas_bt.bt_folded
    ),
    "ft": Benchmark(nas_ft.ft_problem, nas_ft.ft_traffic, nas_ft.ft_trace, nas_ft.ft_folded),
}


def is_nas_name(text: str) -> bool:
    """Whether the text has the form of a benchmark's name, like "lu.C.64"."""
    return _NAME.fullmatch(text) is not None


def check_nas_name(name: str) -> None:
    """Raise `TraceError` as `nas_traffic` does, without generating anything."""
    benchmark, nas_class, ranks = _split(name)
    benchmark.check(nas_class, ranks)


def nas_traffic(name: str, *, steps: int | None = None) -> Traffic:
    """Traffic of the benchmark so named, by formula.

    Parameters
    ----------
    name : str
        ``benchmark.class.ranks``.
    steps : int, optional
        Time steps instead of the class's own.

    Raises
    ------
    TraceError
        Unknown benchmark or class, or a rank count that the benchmark does not allow.
    """
    benchmark, nas_class, ranks = _split(name)
    return benchmark.traffic(nas_class, ranks, steps=steps)


def nas_trace(name: str, *, steps: int | None = None, flops: float = 1e9) -> Trace:
    """Full program of the benchmark so named; see `nas_traffic` and the benchmark's own file.

    Parameters
    ----------
    flops : float
        Operations per second of one rank, as NPB counts them, see `nas_program`.
    """
    benchmark, nas_class, ranks = _split(name)
    return benchmark.trace(nas_class, ranks, steps=steps, flops=flops)


def nas_folded(name: str, *, steps: int | None = None, flops: float = 1e9) -> Folded:
    """Full program of the benchmark so named, its repeated parts as loops; see `nas_trace`."""
    benchmark, nas_class, ranks = _split(name)
    return benchmark.folded(nas_class, ranks, steps=steps, flops=flops)


_NAME = re.compile(r"([a-zA-Z]{2})\.([a-zA-Z])\.([0-9]+)")


def _split(name: str) -> tuple[Benchmark, str, int]:
    match = _NAME.fullmatch(name)
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
