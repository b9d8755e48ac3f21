"""The functions that the recorder's library puts before MPI's, in C, from the user's mpi.h."""

from __future__ import annotations

import re

from .hooks import HOOKS

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

    Parameters
    ----------
    header : str
        mpi.h as the preprocessor leaves it.
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
