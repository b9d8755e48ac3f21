"""What cannot fit in memory is refused before it begins; what may fit is not."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from hopmap.simulator import Record, lower, simulate
from hopmap.topologies import torus
from hopmap.traces import (
    OutOfMemoryError,
    nas_folded,
    nas_trace,
    nas_traffic,
    read_trace,
    require_memory,
    write_trace,
)
from hopmap.traces.safety import guarded_process


@pytest.fixture
def free(monkeypatch):
    """Set how much memory is free, for those who ask hopmap."""

    def set_to(available):
        free = SimpleNamespace(available=available)
        monkeypatch.setattr("psutil.virtual_memory", lambda: free)

    return set_to


def test_the_line_names_what_needs_how_much_and_what_to_do_instead(free):
    free(2**30)
    require_memory(2**30, "a table", "take less")
    with pytest.raises(OutOfMemoryError) as error:
        require_memory(3 * 2**30, "a table", "take less")
    assert str(error.value) == (
        "a table takes at least 3.0 GiB of memory, 1.0 GiB are free: take less"
    )
    with pytest.raises(OutOfMemoryError, match=r"1\.0 GiB are free, enough for 1,024 rows: take"):
        require_memory(3 * 2**30, "a table", "take less", part=(2**20, "rows"))


def test_a_trace_of_two_billion_messages_is_refused_at_once():
    with pytest.raises(OutOfMemoryError, match=r"lu\.D\.4096: .* 1,975,849,596 messages"):
        nas_trace("lu.D.4096")


def test_an_engine_that_writes_loops_out_is_refused_what_the_compiled_one_takes(free):
    program = lower(nas_folded("lu.W.4", steps=20))
    rows = int(program.iterations().sum())
    free(15 * rows)
    place = torus((2, 2)), np.arange(4)
    simulate(program, *place, engine="compiled")
    for engine in ("flow", "analytic"):
        with pytest.raises(OutOfMemoryError, match=f"{rows:,} operations.*engine compiled"):
            simulate(program, *place, engine=engine)
    with pytest.raises(OutOfMemoryError, match=r"keeps [\d,]+ messages"):
        simulate(program, *place, engine="compiled", record=Record(messages=True))


@pytest.mark.parametrize("share", [1.0, 0.1])
def test_archive_and_program_are_weighed_too(free, share, tmp_path, monkeypatch):
    monkeypatch.delattr(guarded_process.os, "fork")  # what a child may die of is tested beside this
    trace = nas_trace("lu.S.4", steps=2)
    write_trace(trace, tmp_path / "s4.otf2")
    tasks = [(13, lambda: read_trace(tmp_path / "s4.otf2")), (130, lambda: lower(trace))]
    for bytes_per_event, task in tasks:
        free(int(share * bytes_per_event * trace.events))
        if share == 1:
            task()
            continue
        with pytest.raises(OutOfMemoryError, match=f"{trace.events:,} events"):
            task()


def test_a_folded_trace_is_small(free):
    free(10 * 2**20)
    program = lower(nas_folded("lu.C.16"))
    assert program.iterations().sum() > 10**6


def test_a_folded_trace_of_sp_is_weighed_by_two_time_steps(free):
    messages = nas_traffic("sp.A.16", steps=1).messages.sum()
    free(2**17)
    with pytest.raises(OutOfMemoryError, match=rf"SP of 64\^3 points .* of {messages} messages"):
        nas_folded("sp.A.16")
