"""Who leads a case, in words that claim no more than its replays tell."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from hopmap.simulator.ensembles.comparison import least_repeats
from hopmap.simulator.ensembles.intervals import Interval

from .findings import percent
from .study import Case

# A per cent: what one replay had wrong at most in docs/VALIDATION.md.
ONE_REPLAY = "one replay each, without noise, so that differences below a per cent may be chance"


def once(runs: pd.DataFrame) -> str:
    """Say what one replay tells, and what tells more, which runs beside other jobs have not."""
    alone = bool(runs["slowdown"].isna().all())
    return ONE_REPLAY + ": replay.repeat = 20 tells which are not" * alone


def leading(case: Case) -> str:
    """Name the mappers that lead."""
    return listed([entry.mapper.strip() for entry in case.leaders])


def standing(case: Case) -> str:
    """Say how sure it is that those lead, and how far behind the next is; empty without repeats."""
    if case.times is None or len(case.entries) < 2:
        return ""
    order = np.argsort(np.median(case.times, axis=1), kind="stable")
    behind = [case.entries[k] for k in order if case.entries[k] not in case.leaders]
    one = len(case.leaders) == 1
    text = "is fastest" if one else "cannot be told apart"
    if not behind:
        count, repeats = case.times.shape
        least = least_repeats(count)
        few = f": {repeats} repeats are too few for {count} mappings, {least} the least"
        return text + (few if repeats < least else "")
    gap = case.against(behind[0], case.leaders[0])
    far = "" if gap is None else f"{excess(gap)} "
    return f"{text}; {far}behind {'it' if one else 'them'}: {behind[0].mapper.strip()}"


def listed(names: Sequence[str]) -> str:
    """Write "A, B and C"."""
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def excess(gap: Interval) -> str:
    """Write how much longer a run takes than a shorter one: "3.1 % (2.9 to 3.3 %)"."""
    middle, low, high = (percent(ratio - 1) for ratio in gap)
    return f"{middle} ({low.removesuffix(chr(160) + '%')} to {high})"
