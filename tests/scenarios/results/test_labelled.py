"""Results of a sweep with labelled axes."""

import json

import numpy as np
import pandas as pd
import pytest

from hopmap.scenarios.results.labelled import to_xarray
from hopmap.scenarios.results.tables import StoreError
from support import DATA
from support.commands import invoke

pytest.importorskip("xarray", reason="needs the extra xarray")


def rows(points, **columns):
    """Runs at these points: (mapper, seed, parameters)."""
    table = pd.DataFrame(
        [
            {
                "trace": "t",
                "topology": "mesh:4",
                "mapper": mapper,
                "seed": seed,
                "variant": json.dumps(parameters),
                "parameters": json.dumps(parameters),
                "makespan": float(place),
                "bytes_ienpc_max": place,
                "bytes_dilation_avg": 1.5,
                "error": None,
            }
            for place, (mapper, seed, parameters) in enumerate(points)
        ]
    )
    return table.assign(**columns)


def test_parameters_that_vary_are_axes_with_their_values():
    points = [
        ("sweep", seed, {"link.latency": latency, "eager_limit": limit, "same": 1})
        for seed in (0, 1)
        for latency in (1e-6, 2e-6)
        for limit in (64, 128)
    ]
    found = to_xarray(rows(points))
    assert dict(found.sizes) == {
        "trace": 1, "topology": 1, "mapper": 1, "seed": 2, "eager_limit": 2, "link.latency": 2,
    }  # fmt: skip
    wanted = ("sweep", 1, {"link.latency": 2e-6, "eager_limit": 64, "same": 1})
    one = found.makespan.sel({"seed": 1, "link.latency": 2e-6, "eager_limit": 64})
    assert one.item() == points.index(wanted)
    assert found.makespan.attrs["units"] == "s"
    assert found.bytes_ienpc_max.attrs["units"] == "B"
    assert "units" not in found.bytes_dilation_avg.attrs


def test_parameters_that_vary_together_are_one_axis():
    points = [("sweep", 0, {"a": 1, "b": 2}), ("sweep", 0, {"a": 3, "b": 4})]
    found = to_xarray(rows(points))
    assert set(found.sizes) == {"trace", "topology", "mapper", "seed", "variant"}
    assert found.makespan.values.ravel().tolist() == [0, 1]


def test_runs_that_are_missing_are_nan_and_failed_ones_are_left_out():
    points = [("sweep", 0, {}), ("random", 0, {}), ("random", 1, {})]
    found = to_xarray(rows(points))
    assert np.isnan(found.makespan.sel(mapper="sweep", seed=1).item())
    found = to_xarray(rows(points, error=[None, None, "failed"]))
    assert found.sizes["seed"] == 1
    with pytest.raises(StoreError, match="no finished runs"):
        to_xarray(rows(points, error="failed"))
    with pytest.raises(StoreError, match="several runs of one trace, topology, mapper, seed"):
        to_xarray(rows([("sweep", 0, {}), ("sweep", 0, {})]))


def test_a_folder_of_results_is_read(tmp_path):
    file = tmp_path / "study.toml"
    file.write_text(
        f'name = "s"\ntraces = ["{DATA / "lu.S.4"}"]\ntopologies = ["mesh:2x2", "torus:4"]\n'
        'mappers = ["sweep", "random"]\nseeds = [0, 1]\n[replay]\nengine = "analytic"\n'
        '[[vary]]\nparameters."link.latency" = ["1 us", "2 us"]\n'
    )
    result = invoke(["run", str(file), "--out", str(tmp_path / "out"), "--no-report"])
    assert result.exit_code == 0, result.output
    found = to_xarray(tmp_path / "out")
    assert dict(found.sizes) == {
        "trace": 1, "topology": 2, "mapper": 2, "seed": 2, "link.latency": 2,
    }  # fmt: skip
    fast, slow = (found.makespan.sel({"link.latency": value}) for value in (1e-6, 2e-6))
    assert (fast < slow).sel(mapper="random", seed=0).all()
