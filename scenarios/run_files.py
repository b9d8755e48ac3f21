"""What `simulate` writes about a run besides its summary: archive, timeline, use of links."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from hopmap.errors import HopmapError
from hopmap.topologies import Mapping, Topology

if TYPE_CHECKING:
    from hopmap.simulator import Program, Result
    from hopmap.traces import Trace

FIGURES = (".svg", ".png", ".pdf")


class RunFileError(HopmapError, ValueError):
    """What is to be written of a run cannot be written so."""


class RunFiles(NamedTuple):
    """Where to write what; None and an empty tuple: not at all."""

    otf2: Path | None = None
    perfetto: Path | None = None
    links: tuple[Path, ...] = ()

    @property
    def operations(self) -> bool:
        """Whether operations have to be recorded."""
        return self.otf2 is not None or self.perfetto is not None

    @property
    def written_out(self) -> bool:
        """Whether loops have to be written out: an archive has all that the trace has."""
        return self.otf2 is not None

    @property
    def paths(self) -> list[Path]:
        """All that is written."""
        return [path for path in (self.otf2, self.perfetto, *self.links) if path is not None]

    def check(self) -> None:
        """Look at what can be known before the run.

        Raises
        ------
        RunFileError
            A file for the use of links that is neither a table nor a figure.
        """
        for path in self.links:
            if path.suffix not in (".parquet", *FIGURES):
                raise RunFileError(
                    f"--links {path}: expected a name ending in .parquet, {', '.join(FIGURES)}"
                )

    def expect_writable(self, program: Program) -> None:
        """Look at the size of what is to be written.

        Raises
        ------
        ViewerError
            A timeline too long for its viewers.
        """
        if self.perfetto is not None:
            from hopmap.simulator.export.perfetto import expect_viewable

            expect_viewable(self.perfetto, program)

    def write(
        self,
        recording: Trace | None,
        program: Program,
        result: Result,
        topology: Topology,
        node_of: Mapping,
        title: str,
    ) -> None:
        """Write all of it.

        Parameters
        ----------
        recording : Trace, optional
            What the program was lowered from; without it, the archive has its operations as calls.

        Raises
        ------
        ViewerError, TraceError, OSError
            A timeline too long for its viewers, or a place that cannot be written.
        """
        if self.otf2 is not None:
            from hopmap.simulator import retimed, trace_of_program
            from hopmap.traces import write_trace

            if recording is None:
                run = trace_of_program(program, result)
            else:
                run = retimed(recording, program, result)
            write_trace(run, self.otf2, node_of=node_of)
        if self.perfetto is not None:
            from hopmap.simulator.export.perfetto import write_perfetto

            write_perfetto(self.perfetto, program, result, topology, node_of)
        for path in self.links:
            _write_links(path, result, topology, title)


def _write_links(path: Path, result: Result, topology: Topology, title: str) -> None:
    assert result.link_use is not None
    if path.suffix == ".parquet":
        from hopmap.simulator.link_use import write_link_use

        write_link_use(path, result.link_use, topology)
        return
    from hopmap.scenarios.figures.link_use import link_use_plot
    from hopmap.scenarios.figures.style import svg_text
    from hopmap.traces.safety.atomic_files import replacing

    figure = link_use_plot(result.link_use, topology, makespan=result.makespan, title=title)
    with replacing(path) as partial:
        if path.suffix == ".svg":
            partial.write_text(svg_text(figure), encoding="utf-8")
        else:
            figure.savefig(partial)
