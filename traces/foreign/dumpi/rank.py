"""The file of one rank: its calls, their arguments and times.

A file begins with its mark and ends with an index: where its parts stand, the last of them behind
the mark again. The calls stand one behind the other (`LAYOUTS`); times are seconds since a bias,
of 16 bits and thus counted on beyond 65,535, and nanoseconds, of the wall clock or else of the
processor. Types have the sizes that the file lists.

Letters of a layout are numbers of 64 (q), 32 (i), 16 (h) and 8 bits (b); arrays of numbers of 32
(A), 16 (H) and 8 bits (B) behind their length of 32 bits; texts of a length (C), arrays of texts
(D), arrays of these (E), and arrays of arrays of numbers (R); statuses (S) behind their number.
What stands from ? to ) or the end is there only in the root's call. All numbers are big-endian.

Source: sstsimulator/sst-dumpi, docs/traceformat.dox, dumpi/common/funclabels.h (numbers),
dumpiio.c (arguments) and iodefs.h (widths).
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from hopmap.arrays import Floats, Ints
from hopmap.traces.foreign.text import read_whole
from hopmap.traces.trace import TraceError

_TABLE = """\
Send=ihiih Recv=ihiihS Get_count=Shi Bsend=ihiih Ssend=ihiih Rsend=ihiih Buffer_attach=i
Buffer_detach=i Isend=ihiihi Ibsend=ihiihi Issend=ihiihi Irsend=ihiihi Irecv=ihiihi Wait=iS
Test=iiS Request_free=i Waitany=iAiS Testany=iAiiS Waitall=iAS Testall=iAiS Waitsome=iAiAS
Testsome=iAiAS Iprobe=iihiS Probe=iihS Cancel=i Test_cancelled=Si Send_init=ihiihi
Bsend_init=ihiihi Ssend_init=ihiihi Rsend_init=ihiihi Recv_init=ihiihi Start=i Startall=iA
Sendrecv=ihiiihiihS Sendrecv_replace=ihiiiihS Type_contiguous=ihh Type_vector=iiihh
Type_hvector=iiihh Type_indexed=iAAhh Type_hindexed=iAAhh Type_struct=iAAHh Address=i
Type_extent=hi Type_size=hi Type_lb=hi Type_ub=hi Type_commit=h Type_free=h Get_elements=Shi
Pack=ihiiih Unpack=iiiihh Pack_size=ihhi Barrier=h Bcast=ihih Gather=iihih?ih Gatherv=iiihih?AA)h
Scatter=iihih?ih Scatterv=iihihih?AA Allgather=ihihh Allgatherv=iihAAhh Alltoall=ihihh
Alltoallv=iAAhAAhh Reduce=ihbih Op_create=ib Op_free=b Allreduce=ihbh Reduce_scatter=iAhbh
Scan=ihbh Group_size=hi Group_rank=hi Group_translate_ranks=hiAhA Group_compare=hhb Comm_group=hh
Group_union=hhh Group_intersection=hhh Group_difference=hhh Group_incl=hiAh Group_excl=hiAh
Group_range_incl=hiRh Group_range_excl=hiRh Group_free=h Comm_size=hi Comm_rank=hi Comm_compare=hhb
Comm_dup=hh Comm_create=hhh Comm_split=hiih Comm_free=h Comm_test_inter=hi Comm_remote_size=hi
Comm_remote_group=hh Intercomm_create=hihiih Intercomm_merge=hih Keyval_create=h Keyval_free=h
Attr_put=hi Attr_get=hii Attr_delete=hi Topo_test=hb Cart_create=hiAAih Dims_create=iiAA
Graph_create=ihiAAih Graphdims_get=hii Graph_get=iihiiAA Cartdim_get=hi Cart_get=ihiAAA
Cart_rank=ihAi Cart_coords=ihiiA Graph_neighbors_count=hii Graph_neighbors=ihiiA Cart_shift=hiiii
Cart_sub=ihAh Cart_map=hiAAi Graph_map=ihiAAi Get_processor_name=Ci Get_version=ii
Errhandler_create=h Errhandler_set=hh Errhandler_get=hh Errhandler_free=h Error_string=iCi
Error_class=ii Wtime Wtick Init=D Finalize Initialized=i Abort=hi Pcontrol Close_port=C
Comm_accept=Chihh Comm_connect=Chihh Comm_disconnect=h Comm_get_parent=h Comm_join=ih
Comm_spawn=iihh?CDihA Comm_spawn_multiple=iiihh?iDEAHA Lookup_name=ChC Open_port=hC
Publish_name=ChC Unpublish_name=ChC Accumulate=ihiiihbh Get=ihiiihh Put=ihiiihh Win_complete=h
Win_create=iihhh Win_fence=bh Win_free=h Win_get_group=hh Win_lock=bibh Win_post=hbh Win_start=hbh
Win_test=hi Win_unlock=ih Win_wait=h Alltoallw=iAAHAAHh Exscan=ihbh Add_error_class=i
Add_error_code=ii Add_error_string=iC Comm_call_errhandler=hi Comm_create_keyval=h
Comm_delete_attr=hh Comm_free_keyval=h Comm_get_attr=hhi Comm_get_name=hCi Comm_set_attr=hh
Comm_set_name=hC File_call_errhandler=hi Grequest_complete=i Grequest_start=i Init_thread=Dbb
Is_thread_main=i Query_thread=b Status_set_cancelled=Si Status_set_elements=Shi
Type_create_keyval=h Type_delete_attr=hh Type_dup=hh Type_free_keyval=h Type_get_attr=hhi
Type_get_contents=iiihiiiAAH Type_get_envelope=hiiib Type_get_name=hCi Type_set_attr=hh
Type_set_name=hC Type_match_size=bih Win_call_errhandler=hi Win_create_keyval=h Win_delete_attr=hh
Win_free_keyval=h Win_get_attr=hhi Win_get_name=hCi Win_set_attr=hh Win_set_name=hC Alloc_mem=ih
Comm_create_errhandler=h Comm_get_errhandler=hh Comm_set_errhandler=hh File_create_errhandler=h
File_get_errhandler=hh File_set_errhandler=hh Finalized=i Free_mem Get_address=i Info_create=h
Info_delete=hC Info_dup=hh Info_free=h Info_get=hCiCi Info_get_nkeys=hi Info_get_nthkey=hiC
Info_get_valuelen=hCii Info_set=hCC Pack_external=Cihiii Pack_external_size=Cihi
Request_get_status=iiS Type_create_darray=iiiABAAbhh Type_create_hindexed=iAAhh
Type_create_hvector=iiihh Type_create_indexed_block=iiAhh Type_create_resized=hiih
Type_create_struct=iAAHh Type_create_subarray=iAAAbhh Type_get_extent=hii Type_get_true_extent=hii
Unpack_external=Ciiiih Win_create_errhandler=h Win_get_errhandler=hh Win_set_errhandler=hh
File_open=hCbhh File_close=h File_delete=Ch File_set_size=hq File_preallocate=hq File_get_size=hq
File_get_group=hh File_get_amode=hb File_set_info=hh File_get_info=hh File_set_view=hqhhCh
File_get_view=hqhhC File_read_at=hqihS File_read_at_all=hqihS File_write_at=hqihS
File_write_at_all=hqihS File_iread_at=hqihi File_iwrite_at=hqihi File_read=hihS File_read_all=hihS
File_write=hihS File_write_all=hihS File_iread=hihi File_iwrite=hihi File_seek=hqb
File_get_position=hq File_get_byte_offset=hqq File_read_shared=hihS File_write_shared=hihS
File_iread_shared=hihi File_iwrite_shared=hihi File_read_ordered=hihS File_write_ordered=hihS
File_seek_shared=hqb File_get_position_shared=hq File_read_at_all_begin=hqih
File_read_at_all_end=hS File_write_at_all_begin=hqih File_write_at_all_end=hS
File_read_all_begin=hih File_read_all_end=hS File_write_all_begin=hih File_write_all_end=hS
File_read_ordered_begin=hih File_read_ordered_end=hS File_write_ordered_begin=hih
File_write_ordered_end=hS File_get_type_extent=hhi Register_datarep=C File_set_atomicity=hi
File_get_atomicity=hi File_sync=h IO_test=iiS IO_wait=iS IO_testall=iAiS IO_waitall=iAS
IO_testany=iAiiS IO_waitany=iAiS IO_waitsome=iAiAS IO_testsome=iAiAS All_functions Function_enter=q
Function_exit=q
"""

NAMES, LAYOUTS = zip(
    *(
        (f"MPI_{name}", layout)
        for name, _, layout in (entry.partition("=") for entry in _TABLE.split())
    ),
    strict=True,
)
"""Names of functions, and the layout of each."""
END_OF_STREAM = len(NAMES)
PROFILED = 2
"""Of the last numbers: what a function of the program's own enters and leaves."""

TYPE_SIZES = (
    *(0, 0, 1, 1, 1, 1, 4, 2, 2, 4, 4, 8, 8, 4),
    *(8, 16, 8, 8, 8, 1, 0, 0, 8, 12, 12, 6, 8, 20),
)
"""Bytes of the types that MPI has by name, where a file does not say."""


MARK = b"\xff\xaa\xddDUMPI"
_PER_BYTE = 8  # bytes of memory that a byte of the file takes at least
_ROOTS = {"MPI_Gatherv": (0, 4), "MPI_Scatterv": (0, 5), "MPI_Comm_spawn": (0, 1)} | {
    "MPI_Comm_spawn_multiple": (1, 2)
}


class Rank(NamedTuple):
    """Calls of one file, `COLUMNS` each, and their arguments."""

    file: Path
    calls: Ints
    values: Ints
    sizes: Ints  # bytes of each type
    bias: int  # seconds
    profiled: int

    def of(self, name: str) -> Ints:
        """Find the calls of a function."""
        return np.flatnonzero(self.calls[:, 0] == NAMES.index(f"MPI_{name}"))

    def get(self, which: Ints, at: Ints | int) -> Ints:
        """Return the number at a place of the arguments of some calls."""
        place = self.calls[which, 3] + at
        if len(place) and not 0 <= place.min() <= place.max() < len(self.values):
            raise TraceError(f"{self.file}: call {which[0]}: arguments that do not fit together")
        numbers: Ints = self.values[place]
        return numbers

    def bytes(self, which: Ints, count: Ints | int, kind: Ints | int) -> Ints:
        """Bytes of buffers, from places of count and type."""
        number, type_ = self.get(which, count), self.get(which, kind)
        bad = (type_ < 0) | (type_ >= len(self.sizes)) | (number < 0)
        if bad.any():
            k = int(np.flatnonzero(bad)[0])
            raise TraceError(
                f"{self.file}: call {which[k]}, {NAMES[self.calls[which[k], 0]]}: {number[k]} of "
                f"type {type_[k]}: expected a count >= 0 and one of {len(self.sizes)} types"
            )
        return number * self.sizes[type_]

    def sums(self, which: Ints, at: Ints | int) -> tuple[Ints, Ints]:
        """Add up arrays of counts; return also how long these are."""
        length = self.get(which, at)
        self.get(which, at + np.maximum(length, 0))
        first = self.calls[which, 3] + at + 1
        below = np.concatenate(([0], np.cumsum(self.values < 0)))
        odd = np.flatnonzero(below[first + length] > below[first])
        if odd.size:
            raise TraceError(
                f"{self.file}: call {which[odd[0]]}, {NAMES[self.calls[which[odd[0]], 0]]}: a "
                "count below 0: expected counts of blocks"
            )
        rising = np.concatenate(([0], np.cumsum(self.values)))
        return rising[first + length] - rising[first], length

    def blocks(self, which: Ints, count: Ints, at: Ints | int) -> Ints:
        """Bytes of so many of the types at a place."""
        kind = self.get(which, at)
        if ((kind < 0) | (kind >= len(self.sizes))).any():
            raise TraceError(f"{self.file}: type {kind.max()}: expected one of {len(self.sizes)}")
        # What is too much for 63 bits is beyond what `collective_bytes` takes, and stays there.
        most = 2**53 // np.maximum(self.sizes[kind], 1) + 1
        whole: Ints = np.minimum(count, most) * self.sizes[kind]
        return whole

    def status_at(self, which: Ints, at: Ints | int) -> Ints:
        """Place of the first status in the values of a call, or -1."""
        has_status = self.calls[which, 5] > 0
        place = self.calls[which, 3] + at
        there = has_status & (place < len(self.values))
        there[there] = self.values[place[there]] > 0
        return np.where(there, place + 1, -1)


def read_rank(file: Path) -> Rank:
    """Read one file."""
    from . import walk_kernels as kernels

    content = read_whole(file, _PER_BYTE)
    size = len(content)
    if not content.startswith(MARK):
        raise TraceError(f"{file}: not a file of DUMPI: expected its magic number")
    mark = int.from_bytes(MARK, "big")
    index = np.frombuffer(content[len(content) % 8 :], ">u8")[-8:][::-1].astype(np.uint64)
    ends = [k for k in range(4, len(index)) if int(index[k]) == mark]
    if not ends:
        raise TraceError(f"{file}: no index in its last 64 bytes: expected one: it is cut")
    places = [int(place) for place in index[: ends[0]]]
    header, body = places[3], places[2]
    if not (8 <= body < size - 8 and 8 <= header < size - 8) or max(places) >= size:
        raise TraceError(f"{file}: index {places[:7]}: expected places in {size} bytes")
    version = tuple(content[header : header + 3])
    data = np.frombuffer(content, dtype=np.uint8)
    width = max(map(len, LAYOUTS))
    layouts = np.zeros((END_OF_STREAM, width), dtype=np.uint8)
    roots = np.zeros((END_OF_STREAM, 2), dtype=np.int64)
    for k, layout in enumerate(LAYOUTS):
        if NAMES[k] in ("MPI_Init", "MPI_Init_thread") and version < (0, 6, 2):
            layout = f"i{layout}"  # which had the length twice
        layouts[k, : len(layout)] = list(layout.encode())
        roots[k] = _ROOTS.get(NAMES[k], (0, 3))
    arguments = (data, body + 8, layouts, roots, version >= (0, 6, 3))
    none = np.zeros((0, kernels.COLUMNS), dtype=np.int64)
    code, at, count, used = kernels.walk(*arguments, none, np.zeros(0, dtype=np.int64))
    if code == kernels.UNKNOWN:
        number = int.from_bytes(content[at : at + 2], "big")
        raise TraceError(
            f"{file}: byte {at}, call {count}: function {number}: expected one below "
            f"{END_OF_STREAM}, or {END_OF_STREAM} behind the last call"
        )
    if code != kernels.FINE:
        raise TraceError(f"{file}: byte {at}, call {count}: its arguments do not fit: it is cut")
    calls = np.zeros((count + 1, kernels.COLUMNS), dtype=np.int64)
    values = np.zeros(used, dtype=np.int64)
    kernels.walk(*arguments, calls, values)
    calls = calls[:count]
    own = calls[:, 0] >= END_OF_STREAM - PROFILED
    calls = calls[~own]
    if len(np.unique(calls[:, 4])) > 1:
        calls = calls[np.argsort(calls[:, 1], kind="stable")]
    biases = np.frombuffer(content, ">i4", 2, body).tolist()
    sizes = np.array(TYPE_SIZES, dtype=np.int64)
    if len(places) > 6 and places[6]:
        known = int.from_bytes(content[places[6] : places[6] + 4], "big")
        if places[6] + 4 + 4 * known > size:
            raise TraceError(
                f"{file}: {known} types at byte {places[6]}: expected fewer: it is cut"
            )
        sizes = np.frombuffer(content, ">i4", known, places[6] + 4).astype(np.int64)
    return Rank(file, calls, values, np.maximum(sizes, 0), biases[1] or biases[0], int(own.sum()))


def times(rank: Rank, bias: int) -> tuple[Floats, Floats]:
    """Begin and end of each call, in seconds since the earliest bias."""
    turn = 65536 * 10**9
    begin, end = rank.calls[:, 1].copy(), rank.calls[:, 2].copy()
    if len(begin):
        begin += turn * np.cumsum(np.diff(begin, prepend=begin[0]) < -turn // 2)
        end += turn * ((begin - end + turn // 2) // turn)
    late = rank.bias - bias
    first, last = (np.add(np.multiply(t, 1e-9, dtype=np.float64), late) for t in (begin, end))
    return first, last
