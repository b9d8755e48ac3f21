"""Build the recorder's library with the user's compiler for MPI, once for every MPI.

The functions that it puts before MPI's are written in C, from the user's mpi.h.
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
from hopmap.traces import recorder

from .hooks import HOOKS
from .raw import numbers_text

# Defined in run.h.
_BY_HAND = ("Init", "Init_thread", "Finalize", "Abort", "Pcontrol")
# Functions that ask or tell the calling process alone: they are left as they are.
_LOCAL = re.compile(
    r"(Type|Group|Info|Op|Errhandler|Error|Attr|Keyval|Get|Status|Session|Aint|Add_error)_.*"
    r"|(Comm|Win|File)_((get|set)_(name|attr|info|errhandler|group|parent)|(create|free)_keyval"
    r"|delete_attr|(create|call)_errhandler|rank|size|group|compare|test_inter"
    r"|remote_(size|group)|get_failed)"
    r"|Win_(attach|detach|shared_query)|File_get_.*|File_set_atomicity"
    r"|(Cart|Graph|Dist_graph)_(get|rank|coords|shift|map|neighbors(_count)?)|(Cart|Graph)dims?_get"
    r"|Topo_test|Dims_create|Pack.*|Unpack.*|Register_datarep|Address|(Alloc|Free)_mem"
    r"|Initialized|Finalized|Is_thread_main|Query_thread|Test_cancelled|Buffer_attach"
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
        for each in (files(recorder) / "c").iterdir()
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
    """Compile beside the place of the folder and move it there, as others may do the same."""
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
