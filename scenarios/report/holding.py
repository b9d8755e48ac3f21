"""Which mapping holds over what varies: regrets of a trace's mappings on a topology."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hopmap.scenarios.quantities import count
from hopmap.scenarios.studies.study import Case, Study
from hopmap.simulator.uncertainty import Standing, percent, sentence, standings

from .tables import Cell

HEAD = (("Mapper", "text"), ("Mean", "number"), ("Worst", "number"), ("Best under", "number"))


def holding(study: Study, trace: str) -> list[dict[str, Any]]:
    """Return a table and a sentence for each topology on which something varies.

    A mapping is that of a mapper and a seed, the same under all variants; of every mapper the one
    of least worst regret is shown. What was not replayed under all variants is left out.
    """
    found = []
    for cases in study.varied(trace):
        best = _best_seeds(cases)
        if len(best) > 1:
            found.append({"topology": cases[0].topology, **_table(best, len(cases))})
    return found


def _best_seeds(cases: Sequence[Case]) -> dict[str, Standing]:
    """Return of every mapper how its mapping of least worst regret fares among all mappings."""
    rows: dict[tuple[str, bytes], dict[int, float]] = {}
    for place, case in enumerate(cases):
        runs = case.runs[case.runs["makespan"].notna()]
        for mapper, node_of, seconds in zip(
            runs["mapper"], runs["node_of"], runs["makespan"], strict=True
        ):
            key = str(mapper).strip(), np.asarray(node_of).tobytes()
            rows.setdefault(key, {})[place] = seconds
    whole = {key: list(row.values()) for key, row in rows.items() if len(row) == len(cases)}
    best: dict[str, Standing] = {}
    found = standings(list(whole.values())) if whole else []
    for (mapper, _), each in zip(whole, found, strict=True):
        if mapper not in best or each.worst < best[mapper].worst:
            best[mapper] = each
    return best


def _table(best: dict[str, Standing], variants: int) -> dict[str, Any]:
    order = sorted(best, key=lambda mapper: (best[mapper].worst, best[mapper].mean))
    rows = [
        [
            Cell(mapper, mapper),
            Cell(f"+{percent(best[mapper].mean)}", best[mapper].mean),
            Cell(f"+{percent(best[mapper].worst)}", best[mapper].worst),
            Cell(count(round(best[mapper].best * variants)), best[mapper].best),
        ]
        for mapper in order
    ]
    return {"head": HEAD, "rows": rows, "said": sentence(list(best), list(best.values()))}
