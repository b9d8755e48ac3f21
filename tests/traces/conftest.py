"""Archives written with the wheel's own Python API, for what no recording at hand contains."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import _otf2
import otf2
import pytest
from otf2.enums import LocationType, MetricMode, MetricType

from hopmap.traces import Kind, Trace
from hopmap.traces.otf2 import archive as reading
from hopmap.traces.safety.guarded_process import run_guarded
from support.archives import archive_of, archives_read_here


@pytest.fixture(scope="module", autouse=True)
def unguarded():
    """Read archives in this process."""
    with archives_read_here():
        yield


@pytest.fixture
def guarded(monkeypatch) -> None:
    """Read archives in a process of their own, as users do."""
    monkeypatch.setattr(reading, "run_guarded", run_guarded)


@pytest.fixture
def write_archive(tmp_path) -> Callable[..., Path]:
    """Write an archive: give a function that is handed the archive under construction."""

    def write(fill: Callable[[SimpleNamespace], None], ranks: int = 3) -> Path:
        folder = tmp_path / "handmade"
        with archive_of(folder, ranks) as archive:
            fill(archive)
        return folder

    return write


@pytest.fixture
def hybrid_archive(write_archive, monkeypatch) -> Path:
    """Three processes with a second thread each, a GPU stream, metrics, an inter-communicator."""

    def fill(a: SimpleNamespace) -> None:
        far = a.group([2, 0])
        near = a.group([1])
        reversed_pair = a.definitions.comm("", group=far)
        bridge = a.definitions.comm("bridge", group=near)
        # The wheel's Python API cannot define what libotf2 3 knows as InterComm.
        write_comm = otf2.definition_writer.DefinitionWriter.write_comm

        def write_bridge(self, reference, name, *rest):
            if reference != bridge._ref:
                return write_comm(self, reference, name, *rest)
            return _otf2.GlobalDefWriter_WriteInterComm(
                *(self._handle, reference, name, far._ref, near._ref, a.world._ref),
                _otf2.COMM_FLAG_NONE,
            )

        monkeypatch.setattr(otf2.definition_writer.DefinitionWriter, "write_comm", write_bridge)
        member = a.definitions.metric_member(
            "cycles", metric_type=MetricType.PAPI, metric_mode=MetricMode.ACCUMULATED_START
        )
        metric = a.definitions.metric_class((member,))
        for rank, master in enumerate(a.masters):
            events = a.events(master)
            events.enter(1, a.main)
            events.metric(1, metric, [7])
            events.enter(3, a.send)
            events.mpi_send(4, (rank + 1) % 3, a.world, 5, 100 + rank)
            if rank == 0:
                events.mpi_send(4, 0, reversed_pair, 6, 7)  # to world rank 2
            if rank == 1:
                events.mpi_send(4, 1, bridge, 7, 8)  # rank 1 of the far side: world rank 0
            if rank == 2:
                events.mpi_send(4, 0, bridge, 7, 9)  # rank 0 of the near side: world rank 1
            events.leave(10, a.send)
            events.leave(20, a.main)
        for rank, process in enumerate(a.processes):
            events = a.events(a.definitions.location("OMP thread 1", group=process))
            events.enter(2, a.main)
            events.enter(3, a.send)
            events.mpi_send(5, (rank + 2) % 3, a.world, 9, 1000)
            events.leave(6, a.send)
            events.leave(30, a.main)
        stream = a.definitions.location(
            "stream", type=LocationType.ACCELERATOR_STREAM, group=a.processes[0]
        )
        events = a.events(stream)
        events.enter(4, a.main)
        events.leave(400, a.main)
        meter = a.definitions.location("meter", type=LocationType.METRIC, group=a.processes[1])
        for time in range(40):
            a.events(meter).metric(time, metric, [time])

    return write_archive(fill)


@pytest.fixture(scope="session")
def events_of() -> Callable[[Trace, int], list[tuple[object, ...]]]:
    """All events of a rank in order, times apart: brackets by region, records in full."""

    def listed(trace: Trace, rank: int) -> list[tuple[object, ...]]:
        mine = slice(trace.offsets[rank], trace.offsets[rank + 1])
        columns = [column.tolist() for column in trace.records]
        return [
            (kind, trace.regions[ref])
            if kind <= Kind.LEAVE
            else (kind, *(column[ref] for column in columns))
            for kind, ref in zip(trace.kind[mine].tolist(), trace.ref[mine].tolist(), strict=True)
        ]

    return listed
