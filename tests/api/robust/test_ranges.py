"""Ranges of parameters, and the models that are drawn from them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hopmap as hm
from hopmap.api.robust.ranges import SHIPPED, draw_models, read_ranges, spread_out
from hopmap.simulator.parameters.settings import configure
from support import about

HAEC = hm.topology("haec:4x4x2")
RANGES = {
    "network.buffer": [0, 1, 4],
    "noise.compute": {"between": [0, 0.05]},
    "link.bandwidth": {"factor": [0.5, 2.0]},
    "eager_limit": {"between": ["8 kB", "64 kB"]},
    "collective.bcast": ["linear", "binomial"],
}


def drawn(ranges, count=12, settings=None, seed=0, network=HAEC):
    return draw_models(read_ranges(ranges), network, settings or {}, count, seed)


def test_every_part_of_a_range_has_as_many_models():
    """A Latin hypercube: of 12 models, 4 have each of three values, one each twelfth of a range."""
    models = drawn(RANGES)
    values = {key: [model[key] for model in models] for key in models[0]}
    assert sorted(values["network.buffer"]) == [0] * 4 + [1] * 4 + [4] * 4
    assert sorted(values["collective.bcast"]) == ["binomial"] * 6 + ["linear"] * 6
    parts = np.floor(np.sort(values["noise.compute"]) / 0.05 * 12)
    assert parts.tolist() == list(range(12))
    assert all(isinstance(each, int) and 8000 <= each <= 64000 for each in values["eager_limit"])


def test_a_factor_on_all_links_is_one_and_with_a_star_each_kinds_own():
    now = {kind.name: kind.bandwidth for kind in HAEC.kinds}
    one = drawn({"link.bandwidth": {"factor": [0.5, 2.0]}}, 64)
    own = drawn({"link.*.bandwidth": {"factor": [0.5, 2.0]}}, 64)
    for models, alike in ((one, True), (own, False)):
        factors = np.array(
            [[model[f"link.{name}.bandwidth"] / now[name] for name in now] for model in models]
        )
        assert factors.min() >= 0.5
        assert factors.max() <= 2
        assert np.ptp(factors, axis=1).max() < 1e-9 or not alike
        assert np.ptp(factors, axis=1).min() > 0 or alike
        # its logarithm is uniform: as many below 1 as above
        assert (factors < 1).mean(axis=0).tolist() == [0.5] * len(now)


def test_factors_are_of_what_is_set_and_what_is_set_is_not_drawn():
    settings = {"link.wireless.bandwidth": "1 GB/s", "network.buffer": 2, "noise.seed": 5}
    for model in drawn(RANGES, settings=settings):
        assert {"network.buffer", "noise.seed"} & set(model) == set()
        _, parameters = configure(HAEC, tuple({**settings, **model}.items()))
        assert parameters.network_buffer == 2
        assert 0.5e9 <= model["link.wireless.bandwidth"] <= 2e9
    factor = {"overhead.send": {"factor": [0.5, 2.0]}}
    sent = [model["overhead.send"] for model in drawn(factor, 64, {"overhead.send": "1 us"})]
    assert 0.5e-6 <= min(sent) < 0.6e-6 < 1.8e-6 < max(sent) <= 2e-6


def test_a_factor_may_depend_on_where_the_value_is_from():
    """Fugaku: bandwidth measured, latency assumed, injection sourced; overheads are defaults."""
    ends = {"measured": [0.9, 1.1], "sourced": [0.75, 1.25], "assumed": [0.5, 2.0]}
    keys = {
        "link.*.bandwidth": "measured",
        "link.*.latency": "assumed",
        "injection.bandwidth": "sourced",
        "overhead.send": "assumed",
        "overhead.recv": "sourced",  # set
    }
    network = hm.topology("preset:fugaku")
    ranges = {key: {"factor": ends} for key in keys}
    settings = {"overhead.recv": 1e-6}
    now, parameters = configure(network, tuple(settings.items()))
    base = {
        "link.*.bandwidth": now.kinds[0].bandwidth,
        "link.*.latency": now.kinds[0].latency,
        "injection.bandwidth": parameters.injection_bandwidth,
        "overhead.send": parameters.overhead_send,
        "overhead.recv": 1e-6,
    }
    models = drawn(ranges, 64, settings, network=network)
    for key, source in keys.items():
        factors = np.array([model[key.replace("*.", "")] for model in models]) / base[key]
        low, high = ends[source]
        assert low <= factors.min() < low * 1.05, key
        assert high / 1.05 < factors.max() <= high, key
    # a speed that the user sets is sourced; one that nobody has set is assumed
    for settings, (low, high) in (
        ({}, ends["assumed"]),
        ({"link.bandwidth": 1e9}, ends["sourced"]),
    ):
        torus = hm.topology("torus:4")
        now, _ = configure(torus, tuple(settings.items()))
        models = drawn({"link.*.bandwidth": {"factor": ends}}, 64, settings, network=torus)
        factors = np.array([model["link.bandwidth"] for model in models]) / now.kinds[0].bandwidth
        assert low <= factors.min() < low * 1.05
        assert high / 1.05 < factors.max() <= high


def test_a_range_of_one_kind_of_link_is_of_no_other():
    for model in drawn({"link.wireless.latency": {"factor": [0.5, 2.0]}}):
        assert {key for key in model if key.startswith("link.")} == {"link.wireless.latency"}


def test_models_come_in_the_order_of_points_far_apart():
    """Of one range the first model is at an end of it, the second at the other."""
    for seed in range(9):
        models = drawn({"noise.compute": RANGES["noise.compute"]}, 12, seed=seed)
        values = [model["noise.compute"] for model in models]
        assert {min(values), max(values)} == set(values[:2])


def test_models_have_noise_of_their_own_and_a_seed_draws_the_same():
    models = drawn(RANGES)
    assert [model["noise.seed"] for model in models] == list(range(12))
    assert drawn(RANGES) == models
    assert drawn(RANGES, seed=1) != models


def test_the_values_of_a_parameter_do_not_depend_on_the_others():
    alone = drawn({"noise.compute": RANGES["noise.compute"]})
    assert {m["noise.compute"] for m in alone} == {m["noise.compute"] for m in drawn(RANGES)}


@given(st.integers(1, 40), st.integers(0, 9))
def test_each_model_is_as_far_as_can_be_from_those_before(count, seed):
    points = np.random.default_rng(seed).random((count, 3))
    order = spread_out(points)
    assert sorted(order) == list(range(count))
    for done in range(1, count):
        gaps = np.linalg.norm(points[:, None] - points[order[:done]], axis=2).min(axis=1)
        assert gaps[order[done]] == pytest.approx(gaps.max())


@pytest.mark.parametrize("spec", ["torus:4x4", "dragonfly:2x4x2", "fattree:4x4", "preset:bgq"])
def test_what_comes_with_hopmap_fits_any_network(spec):
    network = hm.topology(spec)
    for model in drawn(None, 6, network=network):
        configure(network, tuple(model.items()))
    assert SHIPPED.is_file()


def test_what_is_no_range_is_one_line():
    for ranges, said in [
        ({}, r"expected a table \[ranges\] with at least one key"),
        ({"network.bufer": [0]}, "unknown parameter 'network.bufer' .did you mean"),
        ({"link.wireles.latency": [0]}, "unknown parameter 'link.wireles.latency'"),
        ({"network.buffer": 4}, r"network.buffer: 4: expected a list of values"),
        ({"network.buffer": [True]}, "expected a list of values"),
        ({"network.buffer": []}, "expected a list of values"),
        ({"network.buffer": [-1]}, "network.buffer -1: expected at least 0"),
        ({"gap": {"betwen": [0, 1]}}, "expected a list of values"),
        ({"gap": {"between": ["1 s", 0]}}, "expected two ends, the least first"),
        ({"gap": {"between": [0]}}, "expected two ends"),
        ({"gap": {"between": [0, float("nan")]}}, "nan"),
        ({"gap": {"between": ["0 s", "1 GB"]}}, "1 GB"),
        ({"gap": {"factor": ["1 s", 2]}}, "expected plain numbers"),
        ({"gap": {"factor": [0, 2]}}, "expected more than 0"),
        ({"gap": {"factor": {"measured": [1, 2]}}}, "expected measured, sourced, assumed"),
        (
            {"gap": {"factor": {"measured": [2, 1], "sourced": [1, 2], "assumed": [1, 2]}}},
            "expected two ends, the least first",
        ),
        ({"progress": {"between": ["in_mpi_calls", "in_mpi_calls"]}}, "expected a list of words"),
        ({"collective.bcast": {"factor": [1, 2]}}, "expected a list of words"),
        ({"energy.node.idle": {"factor": [1, 2]}}, "expected values"),
    ]:
        with about(ranges, said):
            with pytest.raises(hm.HopmapError, match=said) as caught:
                drawn(ranges)
            assert "\n" not in str(caught.value)


def test_files_that_are_none_are_one_line(tmp_path):
    (tmp_path / "bad.toml").write_text("[ranges", encoding="utf-8")
    (tmp_path / "none.toml").write_text("a = 1", encoding="utf-8")
    for name, said in (("no", "No such file"), ("bad", "TOML"), ("none", "expected a table")):
        with pytest.raises(hm.HopmapError, match=said):
            read_ranges(tmp_path / f"{name}.toml")
    with pytest.raises(hm.HopmapError, match="all their parameters are set"):
        drawn({"gap": [0, 1e-9]}, settings={"gap": 0})
