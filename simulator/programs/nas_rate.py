"""The rate of a NAS benchmark's compute model, taken from a recorded run of it.

A recorded run makes the very calls that its generator makes, so that the two can be laid side by
side: what a rank computed before its calls against the operations that the model puts there. Time
before messages counts, packing them included; time before collectives counts where the model has
operations. Left out is what NPB's own Mop/s leaves out: start-up, all up to and with the first
operations of a rank (before which matrices and keys are made), and verification.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from hopmap.arrays import Bools, Floats, Ints
from hopmap.traces import Kind, Trace, TraceError, is_nas_name, nas_trace, nas_traffic, traffic_of

from .computation import computation
from .mpi_calls import calls_of

NAS_CLASSES = "SWABCDE"


@dataclass(frozen=True)
class Rate:
    """What a recorded run says about the compute model."""

    name: str  # the benchmark that it is a run of, like "cg.S.16"
    # operations, seconds: shape (ranks,): what the model has each rank do, and how long it took
    operations: Floats
    seconds: Floats
    left_out: float  # seconds that ranks computed besides, all together

    @property
    def flops(self) -> float:
        """Operations per second of a rank: the rate at which all together take as long."""
        return float(self.operations.sum() / self.seconds.sum())

    @property
    def by_rank(self) -> Floats:
        """Operations per second of every rank that has some."""
        some = self.seconds > 0
        return self.operations[some] / self.seconds[some]

    def to_dict(self) -> dict[str, Any]:
        """Return the fit, JSON-serialisable."""
        ranks = self.by_rank
        return {
            "of": self.name,
            "flops": self.flops,
            "lowest": float(ranks.min()),
            "highest": float(ranks.max()),
            "deviation": float(ranks.std() / ranks.mean()),
            "seconds": float(self.seconds.sum()),
            "left_out_seconds": self.left_out,
        }


def fit_rate(recorded: Trace, benchmark: str) -> Rate:
    """Take the rate of the compute model from a recorded run.

    Parameters
    ----------
    recorded : Trace
        A whole run of the benchmark, of any class and number of ranks.
    benchmark : str
        "lu", "cg", ...
    """
    name = _recognised(recorded, benchmark)
    model = nas_trace(name, flops=1.0)  # seconds are operations
    ours, theirs = _computed(model), _computed(recorded)
    if not np.array_equal(ours.ends, theirs.ends):
        raise TraceError(
            f"{recorded.name}: has other calls than {name}: expected a whole run of NPB 3.3-MPI"
        )
    operations, seconds = np.zeros(recorded.ranks), np.zeros(recorded.ranks)
    end = 0
    for rank, last in enumerate(ours.ends.tolist()):
        begin, end = end, last + 1
        model_has = np.flatnonzero(ours.before[begin:end])
        if not len(model_has):
            continue
        begin += int(model_has[0]) + (len(model_has) > 1)
        counts = ours.message[begin:end] | (ours.before[begin:end] > 0)
        operations[rank] = ours.before[begin:end].sum()
        seconds[rank] = theirs.before[begin:end][counts].sum()
    if not seconds.sum() > 0:
        raise TraceError(f"{recorded.name}: no computation in it: expected a recorded run")
    return Rate(name, operations, seconds, float(theirs.before.sum() - seconds.sum()))


class _Computed(NamedTuple):
    """Of calls that communicate and of the ends of ranks, rank after rank: what comes before."""

    before: Floats  # seconds
    message: Bools  # whether the call sends or receives one
    ends: Ints  # which are the ends


def _computed(trace: Trace) -> _Computed:
    calls = calls_of(trace)
    acts = trace.kind > Kind.LEAVE
    kept = np.union1d(calls.of_event[acts], calls.finish)
    messages = calls.of_event[acts & (trace.kind < Kind.COLLECTIVE_BEGIN)]
    return _Computed(
        np.add.reduceat(computation(trace, calls).gap, np.append(0, kept[:-1] + 1)),
        np.isin(kept, messages),
        np.searchsorted(kept, calls.finish),
    )


def _recognised(recorded: Trace, benchmark: str) -> str:
    """Name of the benchmark, class included, that has the messages of a recorded run."""
    traffic = traffic_of(recorded)
    found = []
    for nas_class in NAS_CLASSES:
        name = f"{benchmark}.{nas_class}.{recorded.ranks}"
        try:
            same = nas_traffic(name).same_as(traffic)
        except TraceError:  # no such class, or not on so many ranks
            continue
        if same:
            found.append(name)
    called = recorded.name.lower().removesuffix(".otf2")
    if is_nas_name(called) and len(found) > 1:  # classes that differ in collectives only
        found = [name for name in found if name.lower() == called]
    if not found:
        raise TraceError(
            f"{recorded.name}: {recorded.ranks} ranks, {traffic.messages.sum():,} messages: "
            f"expected a whole run of {benchmark}, of any class"
        )
    if len(found) > 1:
        raise TraceError(
            f"{recorded.name}: may be a run of {', '.join(found)}: expected an archive so named"
        )
    return found[0]
