"""NAS benchmarks at more ranks, held against their generators: the same program, or a refusal."""

import pytest

from hopmap.traces import TraceError, nas_folded, nas_trace, nas_traffic, traffic_of
from hopmap.traces.extrapolation.extrapolate import extrapolate
from hopmap.traces.extrapolation.groups import Group
from hopmap.traces.folded import traffic_of_folded, unfold
from hopmap.traces.otf2.read import read_trace
from hopmap.traces.otf2.write import write_trace
from support.made_traces import differences
from support.slow import slow

SOURCES = (16, 64)
LONG = ("lu.B", "lu.C", "cg.C", "cg.E", "sp.A", "sp.B", "sp.C", "bt.B", "bt.C")


def from_two(name, target=256, sources=SOURCES):
    return extrapolate([nas_folded(f"{name}.{ranks}") for ranks in sources], target)


@pytest.mark.parametrize("name", ["lu.A", "cg.A", *slow("bt.A", *LONG)])
def test_256_ranks_from_16_and_64_are_the_generators_program(name):
    """Every call, partner, tag, size and loop of every rank; so pairs, messages and bytes too."""
    found = from_two(name)
    assert differences(found.program, nas_folded(f"{name}.256")) == []
    assert traffic_of_folded(found.program).same_as(nas_traffic(f"{name}.256"))
    assert found.grids == ((4, 4), (8, 8), (16, 16))
    assert not found.checked


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("mg.A", "loops that grow do not explain it"),  # coarse levels leave ranks idle
        ("lu.D", "does not divide evenly"),  # 408 points: 102, 51, then 25.5
        ("is.A", "not known"),  # keys by their values
        # 75000 rows: 18750, 9375, then 4687.5
        pytest.param("cg.B", "does not divide evenly", marks=pytest.mark.slow),
    ],
)
def test_what_is_not_known_is_refused(name, why):
    with pytest.raises(TraceError, match=why):
        from_two(name)


def test_a_program_without_messages_has_its_collectives_at_more_ranks():
    found = from_two("ep.A")
    assert differences(found.program, nas_folded("ep.A.256")) == []


def test_three_sizes_check_each_other():
    found = from_two("ep.A", 256, (16, 64, 128))
    assert found.checked
    assert differences(found.program, nas_folded("ep.A.256")) == []


def test_the_largest_of_three_has_to_be_what_the_others_predict():
    sources = [nas_folded(f"ep.A.{ranks}") for ranks in (16, 64, 128)]
    sizes = sources[-1].trace.records.size
    sizes[sizes > 0] += 128
    with pytest.raises(
        TraceError, match=r"the prediction for 128 ranks from \[16, 64\] differs from"
    ):
        extrapolate(sources, 256)


def test_a_recording_is_a_source(tmp_path):
    """Written, read back, and with no loops: calls stand one after the other."""
    sources = []
    for ranks in (16, 64):
        path = tmp_path / f"lu{ranks}.otf2"
        write_trace(nas_trace(f"lu.A.{ranks}", steps=1), path)
        sources.append(read_trace(path))
    found = extrapolate(sources, 256)
    assert traffic_of_folded(found.program).same_as(nas_traffic("lu.A.256", steps=1))
    assert traffic_of(unfold(found.program)).same_as(nas_traffic("lu.A.256", steps=1))


def test_loops_of_a_recording_are_found_and_do_not_hide_what_grows():
    """CG's butterflies have a stage more at more ranks, in each of its iterations."""
    found = extrapolate([nas_trace(f"cg.A.{ranks}", steps=1) for ranks in SOURCES], 256)
    assert traffic_of_folded(found.program).same_as(nas_traffic("cg.A.256", steps=1))
    assert found.program.trace.events < nas_trace("cg.A.64", steps=1).events


def test_steps_that_are_alike_are_looked_at_once(monkeypatch):
    """A recording of which no loops are found, or follow no rule, is compared step by step."""
    seen = []
    step = Group._step
    monkeypatch.setattr(Group, "_step", lambda self, *of: seen.append(1) or step(self, *of))
    sources = [nas_trace(f"cg.S.{ranks}", steps=1) for ranks in (8, 16)]
    with pytest.raises(TraceError, match="2 rules that differ there"):
        extrapolate(sources, 64)
    assert len(seen) < sources[0].events // sources[0].ranks


def test_a_grid_without_an_inside_says_nothing_of_one_that_has_it():
    with pytest.raises(TraceError, match="4 ranks"):
        from_two("lu.A", 64, (4, 16))


@pytest.mark.parametrize(
    ("sources", "target", "why"),
    [
        ((16, 64), 64, "expected more than the 64 recorded"),
        ((16, 16), 64, "expected different numbers"),
        ((16, 64), 257, "not known"),
    ],
)
def test_rank_counts_that_make_no_sense(sources, target, why):
    with pytest.raises(TraceError, match=why):
        from_two("lu.A", target, sources)
