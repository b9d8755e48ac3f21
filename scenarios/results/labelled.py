"""Results of a sweep as an array with labelled axes (xarray): trace, topology, mapper, seed, ..."""

from __future__ import annotations

import json
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hopmap.errors import needs

from .store import load_results
from .tables import StoreError

if TYPE_CHECKING:
    import pandas as pd

AXES = ("trace", "topology", "mapper", "seed")
UNITS = {
    **dict.fromkeys(("makespan", "makespan_median", "makespan_low", "makespan_high"), "s"),
    **dict.fromkeys(("makespan_ideal_network", "compute", "communicate", "wait"), "s"),
    **dict.fromkeys(("mapping_seconds", "replay_seconds"), "s"),
    **dict.fromkeys(("link_seconds_total", "link_seconds_max"), "s"),
    **dict.fromkeys(("energy", "energy_transfer"), "J"),
    **dict.fromkeys(("hop_bytes", "replayed_hop_bytes", "replayed_congestion_max"), "B"),
}


def to_xarray(results: str | Path | pd.DataFrame) -> Any:
    """Return the finished runs of a sweep as an array with labelled axes.

    Parameters
    ----------
    results : path or DataFrame
        A folder of results, or rows of `load_results`.

    Returns
    -------
    xarray.Dataset
        A variable for each column of numbers, with its unit where it has one. Axes are trace,
        topology, mapper, seed, and each parameter that the sweep varies, with its value as label;
        "variant" where parameters vary together. Combinations that were not run are NaN; failed
        runs are left out.

    Raises
    ------
    StoreError
        No results, or runs that these axes do not tell apart.
    MissingExtraError
        xarray is not installed.
    """
    with needs("xarray", "to_xarray"):
        import xarray  # noqa: F401
    rows = load_results(results) if isinstance(results, str | Path) else results
    rows = rows[rows["error"].isna()] if "error" in rows else rows
    if rows.empty:
        raise StoreError("to_xarray: no finished runs: expected some")
    varied = _varied(rows)
    points = set(zip(*varied.values(), strict=True))
    if len(points) < prod(len(set(values)) for values in varied.values()):
        varied = {"variant": rows["variant"].tolist()}
    rows = rows.assign(**varied)
    axes = [*AXES, *varied]
    if rows.duplicated(axes).any():
        raise StoreError(f"to_xarray: several runs of one {', '.join(axes)}: expected one each")
    numbers = rows.select_dtypes("number").columns.difference(axes)
    array: Any = rows.set_index(axes)[[*numbers]].to_xarray()
    for name in array.data_vars:
        amount = name.startswith("bytes_") and "dilation" not in name
        if unit := UNITS.get(name) or ("B" if amount else ""):
            array[name].attrs["units"] = unit
    return array


def _varied(rows: pd.DataFrame) -> dict[str, list[Any]]:
    """Return values of parameters that differ between runs, by their keys."""
    sets = [json.loads(text) if text else {} for text in rows["parameters"]]
    keys = sorted({key for parameters in sets for key in parameters})
    columns = {key: [_label(parameters.get(key)) for parameters in sets] for key in keys}
    return {key: values for key, values in columns.items() if len(set(values)) > 1}


def _label(value: Any) -> Any:
    return value if isinstance(value, int | float | str) else json.dumps(value)
