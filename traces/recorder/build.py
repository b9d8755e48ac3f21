"""Build the recorder's library with the user's compiler for MPI, once for every MPI.

The functions that it puts before MPI's are written in C, from the user's mpi.h. `HOOKS` is what
they do before and behind each function: p1, p2, ... are its parameters in the order of the
standard; functions with the suffix _c do as those without it. A function that has no hook is
recorded as a call of which no more is known.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from hopmap.errors import HopmapError

from .raw import numbers_text

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
    "Compare_and_swap": ("RMA_ATOMIC, 3, bytes(2, p4), bytes(1, p4), p5, p7", 7),
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
        "Buffer_iflush": ("", "other(*p1);"),
        "Comm_iflush_buffer": ("", "other(*p2);"),
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

# Defined in run.h.
_BY_HAND = ("Init", "Init_thread", "Finalize", "Abort", "Pcontrol")
# Functions that ask or tell the calling process alone: they are left as they are.
_LOCAL = re.compile(
    r"(Type|Group|Info|Op|Errhandler|Error|Attr|Keyval|Status|Session|Aint|(Add|Remove)_error)_.*"
    r"|Get_(address|count|elements(_x)?|(hw_resource|processor|library)_(info|name|version)|version)"
    r"|(Comm|Win|File)_((get|set)_(name|attr|info|errhandler|group|parent)|(create|free)_keyval"
    r"|delete_attr|(create|call)_errhandler|rank|size|group|compare|test_inter"
    r"|remote_(size|group)|get_failed)"
    r"|Win_(attach|detach|shared_query)|File_get_.*|File_set_atomicity"
    r"|(Cart|Graph|Dist_graph)_(get|rank|coords|shift|map|neighbors(_count)?)|(Cart|Graph)dims?_get"
    r"|Topo_test|Dims_create|Pack.*|Unpack.*|Register_datarep|Address|(Alloc|Free)_mem"
    r"|Initialized|Finalized|Is_thread_main|Query_thread|Test_cancelled|(Buffer|Comm)_attach(_buffer)?"
    r"|Grequest_complete|Reduce_local|\w+_(c2f|f2c|c2f08|f082c)"
)
_PROTOTYPE = re.compile(r"\bint\s+MPI_([A-Z][a-z]\w*)\s*\(([^;{}()]*)\)[^;{}]*;")
_PARAMETER = re.compile(r"(?P<type>.*?[\s*])(?P<name>\w+)\s*(?P<array>(\[[^\]]*\]\s*)*)", re.DOTALL)
_FILE_REQUEST = re.compile(r"File_i(read|write)\w*")
_FUNCTION = """\
int MPI_{name}({parameters}) {{
    typedef int function({parameters});
    static function *real;
    if (!real) real = (function *)real_function("PMPI_{name}");
    if (!entering(REGION_MPI_{name}, "MPI_{name}")) return real({arguments});
    {before}
    int rc = real({arguments});
    returned();
    if (rc == MPI_SUCCESS) {{ {behind} }} else count(FAILED_CALLS, 1);
    leaving(REGION_MPI_{name});
    return rc;
}}
int PMPI_{name}({parameters}) __attribute__((alias("MPI_{name}")));
"""


def prototypes(header: str) -> dict[str, list[str]]:
    """Return the functions of MPI that may communicate, with their parameters renamed p1, p2, ...

    `header` is mpi.h as the preprocessor leaves it.
    """
    found = {}
    for name, between in _PROTOTYPE.findall(header):
        if _LOCAL.fullmatch(name.removesuffix("_c")):
            continue
        declared = [text.strip() for text in between.split(",")]
        if declared == ["void"]:
            declared = []
        parameters = []
        for place, text in enumerate(declared, 1):
            match = _PARAMETER.fullmatch(text)
            if match is None:
                parameters.append(text)
                continue
            kind = " ".join(match["type"].split())
            parameters.append(f"{kind} p{place}{''.join(match['array'].split())}")
        found[name] = parameters
    return found


def wrappers_text(header: str) -> tuple[str, str]:
    """Return the functions, and the numbers of their regions, both in C."""
    functions = prototypes(header)
    numbers = "".join(f"    REGION_MPI_{name},\n" for name in functions)
    written = []
    for name, parameters in functions.items():
        if name in _BY_HAND:
            continue
        before, behind = HOOKS.get(name.removesuffix("_c"), ("", ""))
        if _FILE_REQUEST.fullmatch(name):
            behind = f"other(*p{len(parameters)});"
        written.append(
            _FUNCTION.format(
                name=name,
                parameters=", ".join(parameters) or "void",
                arguments=", ".join(f"p{k + 1}" for k in range(len(parameters))),
                before=before,
                behind=behind,
            )
        )
    return "".join(written), f"enum {{\n{numbers}}};\n"


LIBRARY = "libhopmaprecord.so"
_FLAGS = ("-std=gnu11", "-O2", "-fPIC", "-shared")
_BEHIND = ("-ldl", "-lpthread")


class RecorderError(HopmapError):
    """A program cannot be recorded."""


class Built(NamedTuple):
    """A library that is built."""

    path: Path  # the library
    mpi: str  # whose mpi.h it is made for; MPICH's has many descendants


def build(mpicc: str = "mpicc", flags: Sequence[str] = ()) -> Built:
    """Build the library, or take the one that was built from the same sources and mpi.h.

    `mpicc` compiles C for the MPI of the program; `flags` are more for it.
    """
    from hopmap.compilation import cache_folder

    command = shutil.which(mpicc)
    if command is None:
        raise RecorderError(f"--mpicc {mpicc}: no such command: expected the compiler of your MPI")
    with tempfile.TemporaryDirectory() as scratch:
        asking = Path(scratch) / "asking.c"
        asking.write_text("#include <mpi.h>\nint hopmap_open_mpi = OPEN_MPI;\n", encoding="utf-8")
        header = _run([command, "-E", "-P", str(asking)], mpicc)
    functions, regions = wrappers_text(header)
    if "int MPI_Send(" not in functions:
        raise RecorderError(f"--mpicc {mpicc}: no MPI_Send in its mpi.h: expected one of MPI 3")
    mpi = "openmpi" if "hopmap_open_mpi = 1" in header else "other"
    mpi = "mpich" if mpi == "other" and "MPIX_" in header else mpi
    texts = {
        each.name: each.read_text(encoding="utf-8")
        for each in (files(__package__) / "c").iterdir()
        if each.name.endswith((".c", ".h"))
    }
    texts |= {"wrappers.h": functions, "numbers.h": numbers_text() + regions}
    how = [command, *_FLAGS, *flags]
    linked = _run([command, "-show"], mpicc)
    folder = cache_folder() / f"recorder-{_digest(texts, (*how, linked))}"
    library = folder / LIBRARY
    if not library.exists():
        _compile(folder, texts, how, mpicc)
    return Built(library, mpi)


def _digest(texts: dict[str, str], words: Sequence[str]) -> str:
    digest = hashlib.blake2b(digest_size=12)
    for text in (*(part for pair in sorted(texts.items()) for part in pair), *words):
        digest.update(text.encode() + b"\0")
    return digest.hexdigest()


def _compile(folder: Path, texts: dict[str, str], how: Sequence[str], mpicc: str) -> None:
    """Compile next to the folder's place and move it there, as others may do the same."""
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix="recorder-") as scratch:
        made = Path(scratch) / "made"
        made.mkdir()
        for name, text in texts.items():
            (made / name).write_text(text, encoding="utf-8")
        source = str(made / "hopmap_record.c")
        _run([*how, source, "-o", str(made / LIBRARY), *_BEHIND], mpicc)
        try:
            made.rename(folder)
        except OSError:
            if not (folder / LIBRARY).exists():
                raise


def _run(words: Sequence[str], mpicc: str) -> str:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if "error" in line] or ["no message"]
        raise RecorderError(f"--mpicc {mpicc}: it fails: {lines[0].strip()}")
    return done.stdout
