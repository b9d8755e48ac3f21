"""What the recorder's library does before and behind each function of MPI, in C.

p1, p2, ... are the function's parameters in the order of the standard; functions with the suffix _c
do as those without it. A function that is not here is recorded as a call of which no more is known.
"""

from __future__ import annotations

_STATUS = "MPI_Status own; if ({0} == MPI_STATUS_IGNORE) {0} = &own;"
_MESSAGE = "MPI_Message message = *p4;"

# Volume of each collective, and the number of its parameters: behind them stand the request of its
# non-blocking form, or info and request of its persistent one.
_VOLUMES = {
    "Barrier": ("barrier(p1)", 1),
    "Bcast": ("bcast(p2, p3, p4, p5)", 5),
    "Reduce": ("reduce(p1, p3, p4, p6, p7)", 7),
    "Allreduce": ("blocks(ALLREDUCE, p1, p3, p4, p3, p4, p6)", 6),
    "Gather": ("gather(GATHER, p1, p2, p3, p5, p6, p7, p8)", 8),
    "Scatter": ("gather(SCATTER, p4, p5, p6, p2, p3, p7, p8)", 8),
    "Gatherv": ("GATHERS(GATHERV, p1, p2, p3, p5, p7, p8, p9)", 9),
    "Scatterv": ("GATHERS(SCATTERV, p5, p6, p7, p2, p4, p8, p9)", 9),
    "Allgather": ("blocks(ALLGATHER, p1, p2, p3, p5, p6, p7)", 7),
    "Allgatherv": ("ALLGATHERS(p1, p2, p3, p5, p7, p8)", 8),
    "Alltoall": ("blocks(ALLTOALL, p1, p2, p3, p5, p6, p7)", 7),
    "Alltoallv": ("PAIRS(ALLTOALLV, TYPE_V, p1, p2, p4, p6, p8, p9)", 9),
    "Alltoallw": ("PAIRS(ALLTOALLW, TYPE_W, p1, p2, p4, p6, p8, p9)", 9),
    "Reduce_scatter": ("REDUCE_SCATTERS(p1, p3, p4, p6)", 6),
    "Reduce_scatter_block": ("blocks(REDUCE_SCATTER_BLOCK, p1, p3, p4, p3, p4, p6)", 6),
    "Scan": ("scan(SCAN, p1, p3, p4, p6)", 6),
    "Exscan": ("scan(EXSCAN, p1, p3, p4, p6)", 6),
}
_EXCHANGES = {
    "Neighbor_allgather": ("p7, OUT_ONE, p2, p3, OUT_ONE, p5, p6", 7),
    "Neighbor_allgatherv": ("p8, OUT_ONE, p2, p3, OUT_EACH, p5, p7", 8),
    "Neighbor_alltoall": ("p7, OUT_ONE, p2, p3, OUT_ONE, p5, p6", 7),
    "Neighbor_alltoallv": ("p9, OUT_EACH, p2, p4, OUT_EACH, p6, p8", 9),
    "Neighbor_alltoallw": ("p9, OUT_TYPED, p2, p4, OUT_TYPED, p6, p8", 9),
}
# Parameters: the communicator that all call on, and the new one.
_CREATES = {
    "Comm_dup": "p1, *p2",
    "Comm_dup_with_info": "p1, *p3",
    "Comm_create": "p1, *p3",
    "Comm_create_group": "MPI_COMM_NULL, *p4",
    "Comm_create_from_group": "MPI_COMM_NULL, *p5",
    "Comm_split": "p1, *p4",
    "Comm_split_type": "p1, *p5",
    "Comm_accept": "p4, *p5",
    "Comm_connect": "p4, *p5",
    "Comm_join": "MPI_COMM_NULL, *p2",
    "Comm_spawn": "p6, *p7",
    "Comm_spawn_multiple": "p7, *p8",
    "Intercomm_create": "p1, *p6",
    "Intercomm_create_from_groups": "MPI_COMM_NULL, *p8",
    "Intercomm_merge": "p1, *p3",
    "Cart_create": "p1, *p6",
    "Cart_sub": "p1, *p3",
    "Graph_create": "p1, *p6",
    "Dist_graph_create": "p1, *p9",
    "Dist_graph_create_adjacent": "p1, *p10",
}
# Kind, OTF2_RmaAtomicType, bytes there and back, target and window; the request of the form with R
# stands behind the parameters.
_ONE_SIDED = {
    "Put": ("RMA_PUT, 0, bytes(p2, p3), -1, p4, p8", 8),
    "Get": ("RMA_GET, 0, bytes(p2, p3), -1, p4, p8", 8),
    "Accumulate": ("RMA_ATOMIC, 0, bytes(p2, p3), 0, p4, p9", 9),
    "Get_accumulate": (
        "RMA_ATOMIC, 7, p11 == MPI_NO_OP ? 0 : bytes(p2, p3), bytes(p5, p6), p7, p12",
        12,
    ),
    "Fetch_and_op": ("RMA_ATOMIC, 7, p6 == MPI_NO_OP ? 0 : bytes(1, p3), bytes(1, p3), p4, p7", 7),
    "Compare_and_swap": ("RMA_ATOMIC, 3, bytes(1, p4), bytes(1, p4), p5, p7", 7),
}


def _hooks() -> dict[str, tuple[str, str]]:
    found = {
        "Recv": (_STATUS.format("p7"), "received(p7, p6);"),
        "Irecv": ("", "posted(RECEIVES, p2, p3, p4, p5, p6, *p7, 0);"),
        "Recv_init": ("", "posted(RECEIVES, p2, p3, p4, p5, p6, *p7, 1);"),
        "Sendrecv": (
            _STATUS.format("p12"),
            "sent(p2, p3, p4, p5, p11); received(p12, p11);",
        ),
        "Sendrecv_replace": (_STATUS.format("p9"), "sent(p2, p3, p4, p5, p8); received(p9, p8);"),
        "Isendrecv": (
            "",
            "posted(HALF_RECEIVES, p7, p8, p9, p10, p11, *p12, 0); unawaited(p2, p3, p4, p5, p11);",
        ),
        "Isendrecv_replace": (
            "",
            "posted(HALF_RECEIVES, p2, p3, p6, p7, p8, *p9, 0); unawaited(p2, p3, p4, p5, p8);",
        ),
        "Wait": ("p2 = hold(1, p1, p2, MPI_STATUS_IGNORE);", "complete(held[0], p2);"),
        "Waitall": ("p3 = hold(p1, p2, p3, MPI_STATUSES_IGNORE);", "complete_all(p1, p3);"),
        "Waitany": (
            "p4 = hold(p1, p2, p4, MPI_STATUS_IGNORE);",
            "if (*p3 != MPI_UNDEFINED) complete(held[*p3], p4);",
        ),
        "Waitsome": (
            "p5 = hold(p1, p2, p5, MPI_STATUSES_IGNORE);",
            "complete_some(*p3, p4, p5);",
        ),
        "Test": (
            "p3 = hold(1, p1, p3, MPI_STATUS_IGNORE);",
            "if (*p2) complete(held[0], p3); else in_vain(1);",
        ),
        "Testall": (
            "p4 = hold(p1, p2, p4, MPI_STATUSES_IGNORE);",
            "if (*p3) complete_all(p1, p4); else in_vain(p1);",
        ),
        "Testany": (
            "p5 = hold(p1, p2, p5, MPI_STATUS_IGNORE);",
            "if (!*p4) in_vain(p1); else if (*p3 != MPI_UNDEFINED) complete(held[*p3], p5);",
        ),
        "Testsome": (
            "p5 = hold(p1, p2, p5, MPI_STATUSES_IGNORE);",
            "if (*p3 == 0) in_vain(p1); else complete_some(*p3, p4, p5);",
        ),
        "Start": ("", "start(*p1);"),
        "Startall": ("", "for (int i = 0; i < p1; i++) start(p2[i]);"),
        "Cancel": ("", "cancel(*p1);"),
        "Request_free": ("hold(1, p1, NULL, MPI_STATUS_IGNORE);", "free_request(held[0]);"),
        "Probe": (_STATUS.format("p4"), "probed(1, p4, p3, -1);"),
        "Iprobe": (_STATUS.format("p5"), "probed(*p4, p5, p3, -1);"),
        "Mprobe": (_STATUS.format("p5"), "matched(1, p5, p3, *p4);"),
        "Improbe": (_STATUS.format("p6"), "matched(*p4, p6, p3, *p5);"),
        "Mrecv": (_MESSAGE + _STATUS.format("p5"), "received_match(message, p5);"),
        "Imrecv": (_MESSAGE, "posted_match(message, *p5);"),
        "Psend_init": (
            "",
            "posted(SENDS_PARTS, (int64_t)p2 * p3, p4, p5, p6, p7, *p9, 1)->partitions = p2;",
        ),
        "Precv_init": ("", "posted(RECEIVES, (int64_t)p2 * p3, p4, p5, p6, p7, *p9, 1);"),
        "Pready": ("", "ready(p2, 1);"),
        "Pready_range": ("", "ready(p3, p2 - p1 + 1);"),
        "Pready_list": ("", "ready(p3, p1);"),
        "Comm_idup": ("", "created_later(p1, *p2, *p3);"),
        "Comm_idup_with_info": ("", "created_later(p1, *p3, *p4);"),
        "Comm_free": ("struct communicator *gone = locked_of(*p1);", "freed(gone);"),
        "Comm_disconnect": ("struct communicator *gone = locked_of(*p1);", "freed(gone);"),
        "Grequest_start": ("", "other(*p5);"),
        "Win_create": ("", "made_window(CREATE_HANDLE, p5, *p6);"),
        "Win_create_dynamic": ("", "made_window(CREATE_HANDLE, p2, *p3);"),
        "Win_allocate": ("", "made_window(CREATE_HANDLE_AND_ALLOCATE, p4, *p6);"),
        "Win_allocate_shared": ("", "made_window(CREATE_HANDLE_AND_ALLOCATE, p4, *p6);"),
        "Win_free": ("MPI_Win gone = *p1;", "freed_window(gone);"),
        "Win_fence": ("", "fenced(p2);"),
        "Win_lock": ("", "locks(p4, p2, p1 == MPI_LOCK_SHARED);"),
        "Win_lock_all": ("", "locks(p2, EVERYBODY, 1);"),
        "Win_unlock": ("", "unlocks(p2, p1);"),
        "Win_unlock_all": ("", "unlocks(p1, EVERYBODY);"),
        "Win_flush": ("", "completed(p2, p1, 1);"),
        "Win_flush_all": ("", "completed(p1, EVERYBODY, 1);"),
        "Win_flush_local": ("", "completed(p2, p1, 0);"),
        "Win_flush_local_all": ("", "completed(p1, EVERYBODY, 0);"),
        "Win_start": ("", "opens(p3, p1, 0);"),
        "Win_post": ("", "opens(p3, p1, 1);"),
        "Win_complete": ("", "closes(p1, 0);"),
        "Win_wait": ("", "closes(p1, 1);"),
        "Win_test": ("", "if (*p2) closes(p1, 1); else not_closed(p1);"),
    }
    for mode in ("", "b", "r", "s"):
        send = f"{mode}send"
        found[send.capitalize()] = ("", "sent(p2, p3, p4, p5, p6);")
        found[f"I{send}"] = ("", "posted(SENDS, p2, p3, p4, p5, p6, *p7, 0);")
        found[f"{send.capitalize()}_init"] = ("", "posted(SENDS, p2, p3, p4, p5, p6, *p7, 1);")
    for name, (volume, last) in _VOLUMES.items():
        found[name] = ("", f"collective({volume});")
        found[f"I{name.lower()}"] = ("", f"collective_request({volume}, *p{last + 1}, 0);")
        found[f"{name}_init"] = ("", f"collective_request({volume}, *p{last + 2}, 1);")
    for name, (sizes, last) in _EXCHANGES.items():
        found[name] = ("", f"exchanged(EXCHANGE(MPI_REQUEST_NULL, {sizes}));")
        for form, request, kept in ((f"I{name.lower()}", 1, 0), (f"{name}_init", 2, 1)):
            made = f"EXCHANGE(*p{last + request}, {sizes})"
            found[form] = ("", f"exchange_request({made}, {kept});")
    for name, parameters in _CREATES.items():
        found[name] = ("", f"created({parameters});")
    for name, (what, last) in _ONE_SIDED.items():
        found[name] = ("", f"moves({what}, 0);")
        found[f"R{name.lower()}"] = ("", f"requested({what}, *p{last + 1});")
    return found


HOOKS = _hooks()
