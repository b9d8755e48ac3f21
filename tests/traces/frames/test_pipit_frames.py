"""Traces as Pipit has them, and back.

Pipit is on no index of packages: what needs it runs where its folder is on PYTHONPATH. The other
tests put its two frames into a plain object, as its `Trace` does.
"""

import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import hopmap as hm
from hopmap.errors import MissingExtraError
from hopmap.traces import TraceError, traffic_of
from hopmap.traces.frames.hatchet import _profile
from support import DATA, about

RECORDED = ("mg.S.16", "lu.S.4", "is.S.16")
NAMES = ["MPI_Send", "MpiSend", "MPI_Send", "work", "MPI_Recv", "MpiRecv", "MPI_Recv", "work"]
TIMES = [0, 1, 1, 5, 0, 2, 7, 8]


@pytest.fixture
def frames(monkeypatch):
    """Pipit's constructor, which keeps two frames and no more."""

    def keep(definitions, events):
        return SimpleNamespace(definitions=definitions, events=events)

    monkeypatch.setitem(sys.modules, "pipit", SimpleNamespace(Trace=keep))


def frame(**changes):
    """Events of a message of 8 bytes from process 0 to 1, as Pipit reads them."""
    columns = {
        "Timestamp (ns)": TIMES,
        "Event Type": ["Enter", "Instant", "Leave", "Enter", "Enter", "Instant", "Leave", "Leave"],
        "Name": NAMES,
        "Process": [0, 0, 0, 0, 1, 1, 1, 0],
        "Attributes": [None] * 8,
    }
    partner = {"communicator": "Comm 7", "msg_tag": 3, "msg_length": 8}
    columns["Attributes"][1] = {"receiver": 1, **partner}
    columns["Attributes"][5] = {"sender": 0, **partner}
    return pd.DataFrame(columns | changes)


@pytest.mark.parametrize("name", RECORDED)
def test_a_trace_comes_back_from_pipit_s_frames_as_it_was(frames, name):
    trace = hm.read_trace(DATA / name)
    back = hm.from_pipit(hm.to_pipit(trace), name)
    assert back.ignored == {}
    assert np.array_equal(back.kind, trace.kind)
    assert np.allclose(back.time - back.time.min(), trace.time - trace.time.min(), atol=1e-9)
    assert [back.regions[n] for n in back.ref[back.kind < 2]] == [
        trace.regions[n] for n in trace.ref[trace.kind < 2]
    ]
    for column in ("peer", "tag", "operation", "size", "received", "request"):
        with about(column):
            found, expected = getattr(back.records, column), getattr(trace.records, column)
            assert np.array_equal(found, expected)
    runs = [hm.simulate(each, "torus:4x4", np.arange(trace.ranks)) for each in (trace, back)]
    assert runs[0].makespan == pytest.approx(runs[1].makespan, rel=1e-9)


def test_partners_are_ranks_in_their_communicator_where_definitions_say_so():
    """Of a communicator of ranks 1 and 0: its rank 0 is world rank 1."""
    definitions = pd.DataFrame(
        [
            *(("Location", n, {"group": f"LocationGroup {n}"}) for n in (0, 1)),
            ("Group", 4, {"paradigm": "Paradigm.MPI", "members": ("Location 1", "Location 0")}),
            ("Group", 5, {"paradigm": "Paradigm.MEASUREMENT_SYSTEM", "members": ()}),
            ("Comm", 7, {"group": "Group 4"}),
            ("Comm", 8, {"group": "Group 5"}),
            ("ClockProperties", float("nan"), {}),
        ],
        columns=["Definition Type", "ID", "Attributes"],
    )
    events = frame()
    events.at[1, "Attributes"]["receiver"] = 0
    events.at[5, "Attributes"]["sender"] = 1
    found = hm.from_pipit(SimpleNamespace(events=events, definitions=definitions))
    assert found.records.peer.tolist() == [1, 0]
    assert [members.tolist() for members in found.communicators] == [[1, 0]]
    end = {"collective_op": "CollectiveOp.BCAST", "communicator": "Comm 7", "root": 0}
    end |= {"size_sent": 8, "size_received": 0}
    events.loc[len(events)] = [9, "Instant", "MpiCollectiveEnd", 0, end]
    found = hm.from_pipit(SimpleNamespace(events=events, definitions=definitions))
    assert found.records.peer.tolist() == [1, 1, 0]  # its rank 0, the root, is world rank 1
    events.at[1, "Attributes"]["receiver"] = 2
    with pytest.raises(TraceError, match=r"MpiSend: partner 2 of Comm 7: expected 0\.\.1"):
        hm.from_pipit(SimpleNamespace(events=events, definitions=definitions))


def test_a_frame_alone_has_world_ranks():
    trace = hm.from_pipit(frame(), "mine")
    assert trace.name == "mine"
    assert traffic_of(trace).to_dict()["bytes"] == 8
    assert trace.time.tolist() == pytest.approx([0, 1e-9, 1e-9, 5e-9, 8e-9, 0, 2e-9, 7e-9])


def test_what_is_no_call_of_mpi_is_counted():
    events = frame(Thread=[0, 0, 0, 1, 0, 0, 0, 1])
    events.loc[len(events)] = [9, "Instant", "MeasurementOnOff", 0, {}, 0]
    assert hm.from_pipit(events).ignored == {"events of other threads": 2, "MeasurementOnOff": 1}


def test_frames_that_are_not_pipit_s_are_answered_in_one_line():
    lost = frame()
    del lost.at[1, "Attributes"]["msg_length"]
    for events, message in [
        (frame().drop(columns="Name"), "no column 'Name': expected a frame of Pipit's events"),
        ([1, 2], "no column 'Timestamp (ns)'"),
        (frame(**{"Timestamp (ns)": TIMES[::-1]}), "is left: expected it to be entered before"),
        (lost, "process 0, MpiSend: attribute 'msg_length': expected what Pipit reads of OTF2"),
    ]:
        with about(message), pytest.raises(TraceError) as error:
            hm.from_pipit(events)
        assert message in str(error.value)
        assert "\n" not in str(error.value)


def test_pipit_is_asked_for_where_it_is_not_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "pipit", None)
    with pytest.raises(MissingExtraError, match="to_pipit requires pipit, which is in no extra"):
        hm.to_pipit(DATA / "lu.S.4")


@pytest.mark.parametrize("name", RECORDED)
def test_pipit_itself_reads_the_same(name):
    """Its matrix of what hopmap writes, and hopmap's traffic of what it reads."""
    pipit = pytest.importorskip("pipit", reason="needs hpcgroup/pipit on PYTHONPATH")
    trace = hm.read_trace(DATA / name)
    given, traffic = hm.to_pipit(trace), traffic_of(trace).to_dict()
    assert np.asarray(given.comm_matrix()).sum() == traffic["bytes"]
    paths, totals = _profile(trace)
    spent: dict[str, float] = {}
    for (path, _), (exclusive, *_) in totals.items():
        region = trace.regions[paths[path][1]]
        spent[region] = spent.get(region, 0.0) + exclusive
    profile = given.flat_profile(per_process=True)["time.exc"].groupby("Name", observed=True).sum()
    assert (profile * 1e-9).to_dict() == pytest.approx(spent)
    own = pipit.Trace.from_otf2(str(DATA / name), num_processes=1)
    assert traffic_of(hm.from_pipit(own)).to_dict() == traffic
