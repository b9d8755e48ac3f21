"""The command scale: a program at more ranks than it was recorded on."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from ..checks import check_out
from ..console import say, working
from ..options import AsJson
from .reading import print_facts, traffic_facts


def scale(
    traces: Annotated[
        list[str],
        typer.Argument(
            metavar="TRACE...",
            help="One program at one or more rank counts: OTF2 archives, or benchmarks like "
            "lu.C.64.",
        ),
    ],
    ranks: Annotated[int, typer.Option(min=2, help="MPI processes to extrapolate to.")],
    out: Annotated[
        Path, typer.Option(help="A folder ending in .otf2, or traffic: .npz .mtx .csv .graph .grf.")
    ],
    as_json: AsJson = False,
) -> None:
    """Extrapolate a program to more ranks, exactly or not at all.

    scaled:RANKS,TRACE,... is the same program wherever a trace is asked for, loops kept.
    """
    from hopmap.scenarios.input_kinds import TRACE, check_kind
    from hopmap.traces.extrapolation.extrapolate import open_scaled
    from hopmap.traces.folded import traffic_of_folded, unfolded
    from hopmap.traces.formats.files import save_traffic
    from hopmap.traces.otf2.write import write_trace

    check_out(out, folder=out.suffix == ".otf2")
    for trace in traces:
        check_kind(TRACE, trace)
    source = open_scaled(f"{ranks},{','.join(traces)}", None)
    with working(f"extrapolating to {ranks} ranks"):
        begin = time.perf_counter()
        found = source.extrapolated()
        traffic = traffic_of_folded(found.program)
        if out.suffix == ".otf2":
            write_trace(unfolded(found.program), out)
        else:
            save_traffic(out, traffic)
        facts = traffic_facts(traffic) | {"wall_seconds": time.perf_counter() - begin}
    told = {"grids": [list(dims) for dims in found.grids], "checked": found.checked}
    print_facts(source.name, facts | told | {"out": str(out)}, as_json)
    if as_json:
        return
    say("grids:   " + ", ".join("x".join(map(str, dims)) for dims in found.grids))
    if found.checked:
        say("checked: the largest recording is what the others predict")
    else:
        say("not checked: a third rank count would be; every step fits those that there are")
