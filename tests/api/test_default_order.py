"""Mappings that end above the default order say so once; others do not."""

import warnings

import pytest

import hopmap as hm
from hopmap.api.comparison import auto_by_both
from hopmap.api.robust.robust import Sampling
from hopmap.errors import AboveDefaultOrderWarning, HopmapWarning
from hopmap.topologies import topology_from_spec


def placed(mapper, topology="torus:4x4", workload="lu.S.16", **options):
    """Return a placement, and what was warned of."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        placement = hm.map_ranks(workload, topology, mapper, **options)
    return placement, [str(w.message) for w in said if issubclass(w.category, HopmapWarning)]


def test_more_hop_bytes_and_a_busier_link_are_said_in_a_line():
    placement, said = placed("rcm")
    after, before = placement.metrics(), placement.metrics_in_default_order()
    assert after.bytes.dilation.sum > before.bytes.dilation.sum
    share = round(100 * (after.bytes.dilation.sum / before.bytes.dilation.sum - 1))
    loads = [each.bytes.congestion.max for each in (after, before)]
    assert said == [
        f"mapper rcm: {after.bytes.dilation.sum:,} hop-bytes are {share} % above the default "
        f"order's {before.bytes.dilation.sum:,}; {loads[0]:,} bytes on the busiest link are "
        f"{round(100 * (loads[0] / loads[1] - 1))} % above its {loads[1]:,}"
    ]
    assert placement.to_dict()["warning"] == placement.warning == said[0]
    assert str(placement).splitlines()[0] == said[0]


@pytest.mark.parametrize("mapper", ["identity", "sweep", "as_allocated", "random", "auto(moves=1)"])
def test_baselines_and_what_is_not_above_say_nothing(mapper):
    placement, said = placed(mapper)
    assert (placement.warning, said, "warning" in placement.to_dict()) == ("", [], False)


@pytest.mark.parametrize(
    ("mapper", "options", "words"),
    [
        ("greedy | timer(hierarchies=1)", {}, "mapper greedy | timer(hierarchies=1): "),
        ("random | local_search(objective=hop_messages)", {}, "hop-messages are"),
        ("congestion(moves=0)", {}, "bytes on the busiest link are"),
        ("random_sampling(samples=1)", {}, "hop-bytes are"),
    ],
)
def test_a_pipeline_is_compared_by_what_its_last_mapper_works_for(mapper, options, words):
    _, said = placed(mapper, **options)
    assert len(said) == 1
    assert words in said[0]


def test_the_objective_of_the_call_counts():
    """A mapping for the busiest link may have more hop-bytes, and that is no warning."""
    workload, topology = "stencil:8x8,5pt,bytes=1000", "dragonfly:2x4x2"
    placement, said = placed("auto(moves=20000)", topology, workload)
    after, before = placement.metrics(), placement.metrics_in_default_order()
    assert after.bytes.congestion.max < before.bytes.congestion.max
    assert said == []
    assert placed("random | descend(evaluations=2)", objective=lambda _: 0.0)[1] == []


def test_the_objective_that_auto_chooses_is_named():
    workload = "stencil:8x8,5pt,bytes=1000"
    for topology, options, name in (
        ("dragonfly:2x4x2", {}, "max_link_load"),
        ("dragonfly:2x4x2", {"objective": "hop_bytes"}, "hop_bytes"),
    ):
        placement, _ = placed("auto(moves=500)", topology, workload, **options)
        assert placement.objective[0] == name
        assert placement.to_dict()["objective"]["name"] == name
    assert placed("auto(moves=500)", "torus:8x8", workload)[0].objective is None


def test_advise_and_robust_warn_of_a_candidate_once():
    for call in (hm.advise, hm.robust):
        with pytest.warns(AboveDefaultOrderWarning, match="mapper rcm: .* are .* above") as said:
            found = call("lu.S.16", "torus:4x4", ["rcm", "sweep"], sampling=Sampling(samples=6))
        texts = [str(w.message) for w in said if w.category is AboveDefaultOrderWarning]
        facts = found.to_dict()["candidates"]
        assert [each["warning"] for each in facts if "warning" in each] == texts
        assert len(texts) == 1


def test_candidates_by_default_are_for_both_objectives_on_any_network():
    both = ("auto(objective=hop_bytes)", "auto(objective=max_link_load)")
    for spec, other in (("torus:4x4", both[1]), ("dragonfly:2x4x2", both[0])):
        assert auto_by_both(topology_from_spec(spec)) == ("auto", other)
    advice = hm.advise(
        "stencil:4x4,5pt,bytes=1000", "dragonfly:2x4x2", seconds=0.3, sampling=Sampling(samples=6)
    )
    names = {each.placement.mapper for each in (advice.best, *advice.candidates)}
    assert names - {"identity"} == {"auto", both[0], "recursive_bisection"}
