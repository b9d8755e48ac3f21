"""Collectives and communicators, recorded under each MPI."""

from __future__ import annotations

import numpy as np
import pytest

from hopmap.simulator.programs.from_trace import lower
from hopmap.traces import Collective, Kind
from support.recorded_runs import ALL

# Sent and received by ranks 0 and 1 of 4, the root being 1, in bytes; see simulator's `volume`.
VOLUMES = {
    "barrier": ((0, 0), (0, 0)),
    "bcast": ((0, 12), (48, 12)),
    "reduce": ((12, 0), (12, 48)),
    "allreduce": ((48, 48), (48, 48)),  # in place: 16 bytes for each of the three others
    "gather": ((8, 0), (8, 32)),
    "scatter": ((0, 8), (32, 8)),
    "gatherv": ((0, 0), (4, 24)),
    "scatterv": ((0, 0), (24, 4)),
    "allgather": ((32, 32), (32, 32)),
    "allgatherv": ((0, 24), (16, 24)),
    "alltoall": ((32, 32), (32, 32)),
    "alltoallv": ((0, 24), (16, 24)),
    "reduce_scatter": ((24, 0), (24, 16)),
    "reduce_scatter_block": ((32, 32), (32, 32)),
    "scan": ((32, 8), (24, 16)),
    "exscan": ((24, 0), (16, 8)),
}
ROOTED = ("bcast", "reduce", "gather", "scatter", "gatherv", "scatterv")


@pytest.mark.parametrize("how", ["blocking", "i"])
def test_collectives_have_the_volumes_that_scorep_gives_them(recorded, how):
    run = recorded(4, "collectives.c", how)
    for rank in (0, 1):
        expected = []
        for name, volumes in VOLUMES.items():
            sent, received = volumes[rank]
            root = ">1" if name in ROOTED else ""
            if how == "i":
                expected.append(f"I{name} COLLECTIVE_REQUEST")
                expected.append(f"Wait COLLECTIVE_COMPLETE{root} {sent}/{received}")
            else:
                expected.append(f"{name.capitalize()} COLLECTIVE_END{root} {sent}/{received}")
        assert run.told(rank)[1 : 1 + len(expected)] == expected
    told = run.trace.records.operation[run.trace.records.operation < Collective.CREATE_HANDLE]
    assert set(told.tolist()) == {Collective[name.upper()] for name in VOLUMES}
    lower(run.trace)


def test_who_sends_how_much_to_whom_in_alltoallv_is_recorded(recorded):
    """Rank r sends r ints to each; OTF2 has only the sums."""
    for how in ("blocking", "i"):
        counts = recorded(4, "collectives.c", how).trace.counts
        rows = np.stack(counts[1:]).T.tolist()
        assert rows == [[r, 0, p, 4 * r] for r in (1, 2, 3) for p in range(4)]


def test_communicators_have_their_members_in_their_order(recorded):
    run = recorded(4, "collectives.c")
    members = [each.tolist() for each in run.trace.communicators]
    assert members[:2] == [[0, 1, 2, 3], []]
    # a half, its copy, and the copy's
    assert sorted(members[2:]) == [[2, 0]] * 3 + [[3, 1]] * 3
    told = run.told(1)
    at = told.index(f"Comm_split {ALL}")
    assert told[at + 1 :] == [
        "Bcast COLLECTIVE_END>3 0/8",
        "Recv RECV>3 t9 8",
        f"Comm_dup {ALL}",
        f"Comm_free {ALL}",
        "Barrier COLLECTIVE_END 0/0",
        "Comm_idup COLLECTIVE_REQUEST",
        "Wait COLLECTIVE_COMPLETE 0/0",
        "Barrier COLLECTIVE_END 0/0",
        "Barrier COLLECTIVE_END 0/0",
        f"Comm_free {ALL}",
        f"Comm_free {ALL}",
        f"Finalize {ALL}",
    ]
    # the same half is the same communicator for both of its members
    rank = run.trace.rank_of_event()[run.trace.kind > Kind.LEAVE]
    used = [set(run.trace.records.comm[rank == r].tolist()) - {-1, 0, 1} for r in range(4)]
    assert used[0] == used[2] and used[1] == used[3] and len(used[0]) == len(used[1]) == 3


def test_two_sides_groups_of_some_and_graphs_are_recorded(recorded):
    """Partners are those of the other side; the root names itself, its own side nobody."""
    run = recorded(4, "groups.c")
    members = [each.tolist() for each in run.trace.communicators]
    assert sorted(members[2:]) == sorted(
        [[0, 2], [1, 3], [1, 3, 0, 2], [0, 2, 1, 3], [3, 0, 1], [3, 0, 1], [0, 1, 2, 3]]
    )
    tag = "t2147418112"
    expected = {
        0: ["Send SEND>3 t5 4", "Bcast COLLECTIVE_END 0/0"],
        1: ["Bcast COLLECTIVE_END>2 0/4"],
        2: ["Bcast COLLECTIVE_END>2 8/0"],
        3: ["Recv RECV>0 t5 4", "Bcast COLLECTIVE_END>2 0/4"],
    }
    for rank, exchanged in expected.items():
        some = ["Comm_create_group COLLECTIVE_END 0/0", "Allreduce COLLECTIVE_END 8/8"]
        other = f"ISEND>{1 - rank} {tag} 4 ISEND_COMPLETE IRECV>{1 - rank} {tag} 4"
        assert run.told(rank)[1:-1] == [
            "Comm_split COLLECTIVE_END 0/0",
            "Intercomm_create COLLECTIVE_END 0/0",
            *exchanged,
            "Intercomm_merge COLLECTIVE_END 0/0",
            "Barrier COLLECTIVE_END 0/0",
            *(some if rank != 2 else []),
            "Comm_create COLLECTIVE_END 0/0",
            "Graph_create COLLECTIVE_END 0/0",
            "Neighbor_allgather" + f" IRECV_REQUEST {other}" * (rank < 2),
        ]
    lower(run.trace)
