"""What passes between calls: computation, and what only looks like it. Ticks are milliseconds."""

from __future__ import annotations

import pytest
from otf2.enums import CollectiveOp, MeasurementMode, Paradigm, RegionRole

from hopmap.simulator import lower
from hopmap.traces import Role, mpi_name, read_trace, write_trace
from hopmap.traces.trace import roles_by_name
from support.archives import call, finish_of, region


def omitted(folder):
    return {
        entry.what: (entry.count, round(entry.seconds, 9), round(entry.share, 9))
        for entry in lower(read_trace(folder)).omitted
    }


class TestTimeOfTheMeasurementSystem:
    def test_a_flush_between_calls_is_no_computation(self, filled):
        def fill(a):
            events, wtime = a.events(a.masters[0]), region(a, "MPI_Wtime")
            call(events, 0, wtime)
            events.buffer_flush(100, 5100)
            call(events, 5200, wtime)

        folder = filled(fill)
        assert finish_of(folder) == [0.2]
        assert omitted(folder) == {"flushes of trace buffers": (1, 5.0, round(5 / 5.2, 9))}

    def test_a_flush_within_a_call_takes_nothing_from_computation(self, filled):
        def fill(a):
            events, wtime = a.events(a.masters[0]), region(a, "MPI_Wtime")
            events.enter(0, wtime)
            events.buffer_flush(100, 900)
            events.leave(1000, wtime)
            # Ends within the call behind it: only what lies before that counts.
            events.buffer_flush(1500, 2500)
            call(events, 2000, wtime, 3000)
            call(events, 3250, wtime)

        assert finish_of(filled(fill)) == [0.75]

    def test_time_without_recording_is_no_computation(self, filled):
        def fill(a):
            events, wtime = a.events(a.masters[0]), region(a, "MPI_Wtime")
            call(events, 0, wtime)
            events.measurement_on_off(100, MeasurementMode.OFF)
            events.buffer_flush(200, 300)  # in it: counted once
            events.measurement_on_off(1100, MeasurementMode.ON)
            call(events, 1500, wtime)
            events.measurement_on_off(1500, MeasurementMode.OFF)  # for good

        folder = filled(fill)
        assert finish_of(folder) == [0.5]
        seconds = {what: time for what, (_, time, _) in omitted(folder).items()}
        assert seconds == {"flushes of trace buffers": 0.1, "recording switched off": 0.9}

    def test_regions_of_the_measurement_system_are_its_own_but_not_what_is_inside(self, filled):
        def fill(a):
            events, wtime = a.events(a.masters[0]), region(a, "MPI_Wtime")
            artificial = {"region_role": RegionRole.ARTIFICIAL}
            program = region(a, "a.out", Paradigm.MEASUREMENT_SYSTEM, **artificial)
            flush = region(a, "TRACE BUFFER FLUSH", Paradigm.MEASUREMENT_SYSTEM, **artificial)
            events.enter(0, program)
            call(events, 100, flush, 1100)
            call(events, 1500, wtime)
            events.leave(2000, program)

        assert finish_of(filled(fill)) == [1.0]


class TestPolling:
    def test_a_rank_that_polls_waits_for_its_message_and_computes_nothing(self, filled):
        def fill(a):
            receiver, sender = (a.events(master) for master in a.masters)
            test, irecv = region(a, "MPI_Test"), region(a, "MPI_Irecv")
            call(receiver, 0, irecv, inside=[("mpi_irecv_request", 3)])
            for at in range(500, 900, 100):
                call(receiver, at, test, at + 10, inside=[("mpi_request_test", 3)])
            call(receiver, 900, test, inside=[("mpi_irecv", 1, a.world, 7, 8, 3)])
            call(sender, 0, a.send, inside=[("mpi_send", 0, a.world, 7, 8)])

        folder = filled(fill, 2)
        assert finish_of(folder) == [0.5, 0.0]
        assert omitted(folder) == {"waiting between polls": (5, 0.36, round(0.36 / 0.9, 9))}

    def test_what_it_waits_for_is_simulated(self, filled):
        def fill(a):
            receiver, sender = (a.events(master) for master in a.masters)
            probe, recv = region(a, "MPI_Iprobe"), region(a, "MPI_Recv")
            for at in range(500, 1000, 100):
                call(receiver, at, probe)
            call(receiver, 900, recv, inside=[("mpi_recv", 1, a.world, 7, 8)])
            call(sender, 0, region(a, "MPI_Wtime"))
            call(sender, 800, a.send, inside=[("mpi_send", 0, a.world, 7, 8)])

        assert finish_of(filled(fill, 2)) == [0.8, 0.8]

    def test_a_region_visited_between_polls_is_computation(self, filled):
        def fill(a):
            events, test = a.events(a.masters[0]), region(a, "mpi_testsome_")
            work, progress = (
                region(a, "work", Paradigm.COMPILER),
                region(a, "progress", Paradigm.USER),
            )
            for at in range(0, 1000, 100):
                events.enter(at, progress)  # around each poll: says nothing of what is between
                call(events, at, test)
                events.leave(at, progress)
                if at == 300:
                    call(events, 310, work, 390)

        # From 300 to 400 ms.
        assert finish_of(filled(fill)) == [0.1]

    @pytest.mark.parametrize(("works", "end"), [(False, 0.5), (True, 0.6)])
    def test_looking_at_the_clock_between_polls_is_waiting_too(self, filled, works, end):
        """As a poll with a time limit does; what is computed before or behind the look counts."""

        def fill(a):
            receiver, sender = (a.events(master) for master in a.masters)
            test, clock = region(a, "MPI_Test"), region(a, "mpi_wtime_")
            call(receiver, 0, region(a, "MPI_Irecv"), inside=[("mpi_irecv_request", 3)])
            for at in range(0, 900, 100):
                call(receiver, at, test)
                if works and at >= 300:
                    call(receiver, at + 10, region(a, "work", Paradigm.USER), at + 20)
                call(receiver, at + 50, clock)
            call(receiver, 900, test, inside=[("mpi_irecv", 1, a.world, 7, 8, 3)])
            call(sender, 0, region(a, "MPI_Wtime"))
            call(sender, 500, a.send, inside=[("mpi_send", 0, a.world, 7, 8)])

        assert finish_of(filled(fill, 2))[0] == end

    def test_time_behind_a_poll_that_found_something_is_computation(self, filled):
        def fill(a):
            events, test = a.events(a.masters[0]), region(a, "MPI_Test")
            call(events, 0, region(a, "MPI_Isend"), inside=[("mpi_isend", 0, a.world, 1, 8, 5)])
            call(events, 0, test, inside=[("mpi_request_test", 5)])
            call(events, 100, test, inside=[("mpi_isend_complete", 5)])
            call(events, 400, test)

        assert finish_of(filled(fill)) == [0.3]


class TestWhatIsACall:
    def test_paradigms_decide_and_not_names(self, filled):
        def fill(a):
            receiver, sender = (a.events(master) for master in a.masters)
            recv, solver = region(a, "mpi_recv_"), region(a, "MPI_my_solver", Paradigm.USER)
            call(receiver, 0, recv, 100, inside=[("mpi_recv", 1, a.world, 7, 8)])
            call(receiver, 100, solver, 1100)
            call(sender, 0, solver, 10000)
            call(sender, 10000, a.send, inside=[("mpi_send", 0, a.world, 7, 8)])

        assert finish_of(filled(fill, 2)) == [11.0, 10.0]

    def test_names_decide_where_there_is_no_paradigm(self, filled):
        def fill(a):
            events = a.events(a.masters[0])
            for k, name in enumerate(("PMPI_Wtime", "MPI_WTIME", "mpi_wtime__", "Mpi_wait_f08_")):
                call(events, 1000 * k, region(a, name, Paradigm.UNKNOWN), 1000 * k + 900)
            call(events, 4000, region(a, "simpi_step", Paradigm.UNKNOWN), 5000)

        assert finish_of(filled(fill)) == [1.4]

    def test_roles_are_kept_by_writing(self, filled, tmp_path):
        def fill(a):
            call(a.events(a.masters[0]), 0, region(a, "MPI_my_solver", Paradigm.USER), 10000)
            call(a.events(a.masters[0]), 10000, a.send)

        write_trace(read_trace(filled(fill)), tmp_path / "again")
        assert finish_of(tmp_path / "again") == [10.0]

    @pytest.mark.parametrize(
        ("name", "role"),
        [
            ("MPI_Recv", Role.CALL),
            ("MPI_Get_count", Role.CALL),
            ("MPI_Test_cancelled", Role.CALL),
            ("mpi_testall_", Role.POLL),
            ("MPI_Improbe", Role.POLL),
            ("MPI_Mprobe", Role.CALL),
            ("MPI_Request_get_status", Role.POLL),
            ("PMPI_FILE_WRITE_ALL", Role.FILE),
            ("MPI_Get", Role.ONE_SIDED),
            ("MPI_Rget_accumulate", Role.ONE_SIDED),
            ("MPI_Win_fence", Role.ONE_SIDED),
            ("main", Role.USER),
            ("MPI_", Role.USER),
        ],
    )
    def test_sorts_of_calls(self, name, role):
        assert roles_by_name([name]).tolist() == [role]

    def test_names_in_every_language(self):
        assert {mpi_name(name) for name in ("MPI_Bsend", "mpi_bsend_", "PMPI_BSEND")} == {"bsend"}


class TestMpiIo:
    def test_its_time_is_kept(self, filled):
        def fill(a):
            events = a.events(a.masters[0])
            write = region(a, "MPI_File_write", region_role=RegionRole.FILE_IO)
            call(events, 0, write, 10000)
            call(events, 11000, region(a, "MPI_Wtime"))

        folder = filled(fill)
        assert finish_of(folder) == [11.0]
        what = "calls of MPI-IO, counted as computation"
        assert omitted(folder) == {what: (1, 10.0, round(10 / 11, 9))}

    def test_a_collective_one_begins_when_all_are_there(self, filled):
        """Rank 1 comes 2 s late; rank 0 waits for it in the call, which takes 3 s by itself."""

        def fill(a):
            write = region(a, "MPI_File_write_all")
            for rank, master in enumerate(a.masters):
                events = a.events(master)
                call(events, 0, region(a, "MPI_Wtime"))
                events.enter(2000 * rank, write)
                events.mpi_collective_begin(2000 * rank)
                none = 0xFFFFFFFF
                events.mpi_collective_end(5000, CollectiveOp.BARRIER, a.world, none, 0, 0)
                events.leave(5000, write)

        assert finish_of(filled(fill, 2)) == [5.0, 5.0]

    def test_flushes_and_time_without_recording_inside_are_not_its_own(self, filled):
        """Of 10 s in the call, 2 s went into a flush and 3 s were not recorded."""

        def fill(a):
            events, write = a.events(a.masters[0]), region(a, "MPI_File_write")
            events.enter(0, write)
            events.buffer_flush(1000, 3000)
            events.measurement_on_off(4000, MeasurementMode.OFF)
            events.measurement_on_off(7000, MeasurementMode.ON)
            events.leave(10000, write)
            call(events, 10000, region(a, "MPI_Wtime"))

        folder = filled(fill)
        assert finish_of(folder) == [5.0]
        told = omitted(folder)
        assert told["flushes of trace buffers"] == (1, 2.0, 0.2)
        assert told["recording switched off"] == (1, 3.0, 0.3)


def test_one_sided_calls_without_records_are_left_out_and_told(filled):
    def fill(a):
        events = a.events(a.masters[0])
        call(events, 0, region(a, "MPI_Put", region_role=RegionRole.RMA), 500)
        call(events, 500, region(a, "MPI_Win_fence"), 1000)
        call(events, 2000, region(a, "MPI_Wtime"))

    folder = filled(fill)
    assert finish_of(folder) == [1.0]
    assert omitted(folder) == {"one-sided calls without records, not simulated": (2, 1.0, 0.5)}


class TestClocks:
    @pytest.mark.parametrize("name", ["MPI_Init", "mpi_init_thread_", "MPI_Session_init"])
    def test_a_rank_computes_nothing_before_its_first_event(self, filled, name):
        """Rank 1's clock is 5 s ahead."""

        def fill(a):
            init = region(a, name)
            for shift, master in zip((0, 5000), a.masters, strict=True):
                events = a.events(master)
                events.enter(shift, a.main)
                call(events, shift + 100, init, shift + 200)
                events.leave(shift + 1000, a.main)

        assert finish_of(filled(fill, 2)) == [0.9, 0.9]

    def test_without_mpi_init_all_clocks_are_the_traces(self, filled):
        def fill(a):
            for shift, master in zip((0, 5000), a.masters, strict=True):
                call(a.events(master), shift, region(a, "MPI_Wtime"))

        assert finish_of(filled(fill, 2)) == [0.0, 5.0]
