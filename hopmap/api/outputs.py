"""Files that `simulate` writes in addition to its summary: archive, timeline, link use."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING

from hopmap.errors import HopmapError

if TYPE_CHECKING:
    from hopmap.simulator import Program, Record, Result
    from hopmap.traces import Trace

WRITE_FIGURE = "hopmap.figures.link_use:write_link_use_plot"
"""Drawing stands above what is drawn, and is loaded only where a figure is asked for."""
LINK_FILES = (".parquet", ".svg", ".png", ".pdf")
BINS = 256


class OutputError(HopmapError, ValueError):
    """A file that a run cannot be written into."""


@dataclass(frozen=True)
class Outputs:
    """Files to write of a run.

    Attributes
    ----------
    otf2 : path, optional
        An archive, for Vampir.
    perfetto : path, optional
        JSON for ui.perfetto.dev.
    links : sequence of path
        Use of links over time: tables (.parquet) or figures (.svg, .png, .pdf).
    bins : int
        Most time steps of `links`; more than half are used.

    Raises
    ------
    OutputError
        A file for the use of links that is neither a table nor a figure.
    """

    otf2: str | Path | None = None
    perfetto: str | Path | None = None
    links: tuple[str | Path, ...] = ()
    bins: int = BINS

    def __post_init__(self) -> None:
        for path in map(Path, self.links):
            if path.suffix not in LINK_FILES:
                known = ", ".join(LINK_FILES)
                raise OutputError(f"--links {path}: expected a name ending in {known}")

    @property
    def record(self) -> Record:
        """What a replay has to record for them."""
        from hopmap.simulator import Record

        operations = self.otf2 is not None or self.perfetto is not None
        return Record(operations=operations, bins=self.bins if self.links else 0)

    @property
    def paths(self) -> list[Path]:
        """All that is written."""
        return [Path(path) for path in (self.otf2, self.perfetto, *self.links) if path is not None]

    def check(self, program: Program, recording: Trace | None = None) -> None:
        """Raise `ViewerError` for a timeline that is too long, `TraceError` for other threads."""
        if self.otf2 is not None and recording is not None:
            from hopmap.simulator.export.simulated_trace import expect_one_thread

            expect_one_thread(recording)
        if self.perfetto is not None:
            from hopmap.simulator.export.perfetto import expect_viewable

            expect_viewable(Path(self.perfetto), program)

    def write(self, result: Result, title: str, recording: Trace | None = None) -> None:
        """Write all of it.

        `recording` is what the program was lowered from; without it, the archive has the
        program's operations as calls.
        """
        from hopmap.simulator.link_use import write_link_use

        program, network, node_of = result.program, result.network, result.node_of
        assert program is not None and network is not None and node_of is not None
        if self.otf2 is not None:
            from hopmap.simulator import retime, trace_of_program
            from hopmap.traces import write_trace

            if recording is None:
                run = trace_of_program(program, result)
            else:
                run = retime(recording, program, result)
            write_trace(run, Path(self.otf2), node_of=node_of)
        if self.perfetto is not None:
            from hopmap.simulator.export.perfetto import write_perfetto

            write_perfetto(Path(self.perfetto), program, result, network, node_of)
        for path in map(Path, self.links):
            use, makespan = result.link_use, result.makespan
            assert use is not None
            if path.suffix == ".parquet":
                write_link_use(path, use, network)
            else:
                resolve_name(WRITE_FIGURE)(path, use, network, makespan=makespan, title=title)
