"""Who leads a case and how surely, what placing ranks buys there, and which network is faster.

Also the best mapping of a folder of results.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from hopmap.simulator.uncertainty import Interval, faster, faster_over_models, ratio
from hopmap.topologies import Mapping as NodeOf
from hopmap.topologies import Topology, topology_from_spec
from hopmap.units import change, percent, runtime, show_seconds

from .plan_file import read_plan
from .store import load_results
from .study import DEFAULTS, NO_PRACTICAL, NO_SIGNIFICANT, NOT_OVER_MODELS, Case
from .tables import StoreError

ONE_REPLAY = "one replay each, without noise: differences below 1 % may be chance"


def describe_one_replay(runs: pd.DataFrame) -> str:
    """Say what one replay shows, and what shows more, which runs with other jobs do not have."""
    alone = bool(runs["slowdown"].isna().all())
    more = "; replay.repeat = 20 shows which are not, replay.models = 40 which hold over models"
    return ONE_REPLAY + more * alone


def name_leaders(case: Case) -> str:
    """Name the mappers that lead."""
    return format_list([entry.mapper.strip() for entry in case.leaders])


def standing(case: Case) -> str:
    """Continue the names of the leaders: how sure that is, how far behind the next is."""
    if case.times is None or len(case.entries) < 2:
        return f": {case.likeness}" if len(case.leaders) > 1 else ""
    order = np.argsort(np.median(case.times, axis=1), kind="stable")
    behind = [case.entries[k] for k in order if case.entries[k] not in case.leaders]
    one = len(case.leaders) == 1
    text = " is fastest" if one else f": {case.likeness}"
    if not behind:
        return text
    gap = case.against(behind[0], case.leaders[0])
    far = "" if gap is None else f"{excess(gap)} "
    return f"{text}; {far}behind {'it' if one else 'them'}: {behind[0].mapper.strip()}"


def format_list(names: Sequence[str]) -> str:
    """Write "A, B and C"."""
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def excess(gap: Interval) -> str:
    """Write how much longer a run takes than a shorter one: "3.1 % (2.9 to 3.3 %)"."""
    middle, low, high = (percent(ratio - 1) for ratio in gap)
    return f"{middle} ({low.removesuffix(chr(160) + '%')} to {high})"


def network_share(case: Case) -> float | None:
    """Return the share of the run by default, or else the best, that the network decides."""
    entry = case.default or case.best
    makespan, free = entry.value("makespan"), entry.value("makespan_ideal_network")
    if makespan is None or free is None or makespan <= 0:
        return None
    return max(0.0, 1 - free / makespan)


def matters(case: Case) -> bool:
    """Whether the best is faster than the default order, with a practical difference."""
    return case.replayed and case.default is not None and case.default not in case.leaders


def verdict(case: Case) -> str:
    """Say whether placing ranks pays in a case, and how many seconds; the table has the rest."""
    best, default = case.leaders[0], case.default
    if default is None:
        return f"no default order ({' or '.join(DEFAULTS)}) to compare with"
    if best is default:
        return "keep the default order"
    if not case.replayed:
        return ""
    if matters(case):
        saved = (default.value("makespan") or 0.0) - (best.value("makespan") or 0.0)
        return f"placing ranks saves {runtime(saved)} of {runtime(default.value('makespan'))}"
    return case.likeness


class Network(NamedTuple):
    """A network of a trace, in a comparison with the others.

    ``behind`` is how much longer its best run takes than that on the fastest network that it is
    compared with, "" of this one; ``likeness`` why it counts as equal to the fastest, "" if it does
    not; ``first`` is the fastest, None where nothing is as large or as dear.
    """

    case: Case
    behind: str
    likeness: str
    first: Case | None


SAME_PRICE = 0.05
"""Share by which prices of networks may differ that are compared at equal cost."""


def networks(cases: Sequence[Case], prices: Mapping[int, float] | None = None) -> list[Network]:
    """Compare the best runs of a trace on several networks, the fastest first; else nothing.

    Only networks of as many nodes are compared, or of as high a price, under the same values of
    what varies. `prices` are by the place of the case.
    """
    replayed = [place for place, case in enumerate(cases) if case.replayed]
    if len({cases[place].topology for place in replayed}) < 2:
        return []
    found: list[Network] = []
    firsts: dict[int, bool] = {}  # fastest of their group, and whether there are others in it
    for place in sorted(replayed, key=lambda k: cases[k].best.value("makespan") or 0.0):
        case = cases[place]
        comparable = (k for k in firsts if _comparable(cases, k, place, prices or {}))
        first = next(comparable, None)
        if first is None:
            firsts[place] = False
            found.append(Network(case, "", "", case))
        else:
            firsts[first] = True
            found.append(_format_gap(cases[first], case))
    alone = [cases[place] for place, others in firsts.items() if not others]
    return [each._replace(first=None) if each.case in alone else each for each in found]


def _comparable(cases: Sequence[Case], one: int, other: int, prices: Mapping[int, float]) -> bool:
    """Whether two networks have as many nodes, or as high a price, and the same of what varies."""
    if cases[one].variant != cases[other].variant:
        return False
    nodes = [cases[place].best.value("nodes") for place in (one, other)]
    least, most = sorted(prices.get(place, np.nan) for place in (one, other))
    return nodes[0] == nodes[1] or bool(most <= least * (1 + SAME_PRICE))


def _format_gap(first: Case, case: Case) -> Network:
    here, least = case.best.value("makespan"), first.best.value("makespan")
    if case.times is None or first.times is None or case.times.shape[1] != first.times.shape[1]:
        near = (here or 0.0) <= (least or 0.0) * (1 + case.relevance)
        return Network(case, change(here, least), NO_PRACTICAL * near, first)
    one, two = (each.times[each.entries.index(each.best)] for each in (case, first))  # type: ignore[index]
    gap = ratio(one, two, models=case.by_models)
    middle, low, high = (change(end, 1.0) for end in gap)
    likeness = NO_PRACTICAL * (gap.median - 1 < case.relevance)
    if case.by_models:
        apart = faster_over_models([two, one], case.relevance)
        likeness = likeness or NOT_OVER_MODELS * (not apart[0, 1])
    else:
        likeness = likeness or NO_SIGNIFICANT * (not faster([two, one])[0, 1])
    return Network(case, f"{middle} ({low} to {high})", likeness, first)


CASE = {"trace": "--trace", "topology": "-t", "variant": "--variant"}
"""What makes a case, and the option that chooses it."""


class BestRun(NamedTuple):
    """A mapping, its network, and in words what it is the best of."""

    node_of: NodeOf
    topology: Topology
    about: str


def best_run(
    folder: str | Path,
    trace: str | None = None,
    topology: str | None = None,
    variant: str | None = None,
) -> BestRun:
    """Return the mapping that is fastest by the median, by its replay, or has least hop-bytes.

    Trace, topology and variant, as the results call them, say which case where there are several.
    """
    runs = load_results(folder)
    done = runs[runs["error"].isna()]
    for column, wanted in zip(CASE, (trace, topology, variant), strict=True):
        if wanted is not None:
            done = done[done[column] == wanted]
    cases = done[list(CASE)].drop_duplicates()
    if cases.empty:
        known = "; ".join(_format_cases(runs[list(CASE)].drop_duplicates()))
        raise StoreError(f"{folder}: no such run has finished: expected one of {known or 'none'}")
    if len(cases) > 1:
        named = "; ".join(_format_cases(cases[:4])) + "; ..." * (len(cases) > 4)
        options = " ".join(option for column, option in CASE.items() if cases[column].nunique() > 1)
        raise StoreError(
            f"{folder}: {len(cases)} cases ({named}): expected one: select it by {options}"
        )
    columns = ("makespan_median", "makespan", "hop_bytes")
    by = next(column for column in columns if done[column].notna().all())
    best = done.sort_values(by, kind="stable").iloc[0]
    called = str(best["topology"])
    network = topology_from_spec(read_plan(Path(folder)).networks.get(called, called))
    (case,) = _format_cases(cases)
    shown = f"{best[by]:,.4g}" if by == "hop_bytes" else show_seconds(best[by])
    about = f"{case}: {best['mapper']}, seed {best['seed']}, {by.replace('_', ' ')} {shown}"
    return BestRun(np.asarray(best["node_of"], dtype=np.int64), network, about)


def _format_cases(cases: pd.DataFrame) -> list[str]:
    """Name cases: trace, network and, if any, variant."""
    return [
        f"{trace} on {', '.join(filter(None, (topology, variant)))}"
        for trace, topology, variant in cases.itertuples(index=False)
    ]
