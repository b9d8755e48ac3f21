"""Parts of a page that only some studies have, by name.

The template shows a part where there is something to show. What is behind a name is imported only
here, so that a part is taken out with its row of the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from hopmap.plugins import Table
from hopmap.scenarios.results.study import Study
from hopmap.traces import Traffic

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Section(NamedTuple):
    """A part of a page."""

    # (study, study with the cases that are shown) -> what the template shows, nothing if it is None
    # or empty
    content: Callable[[Study, Study], Any]
    # (study, traffic by trace) -> section of the page, file name, caption, figure, one after
    # another; they stand instead of those of the traces
    figures: (
        Callable[[Study, dict[str, Traffic | None]], Iterator[tuple[str, str, str, Figure]]] | None
    ) = None
    count: Callable[[Study], int] = lambda _: 0  # how many figures these are
    # (study, trace) -> words of the file name, caption, figure, among those of a trace
    trace_figures: Callable[[Study, str], Iterable[tuple[str, str, Figure]]] = lambda *_: ()
    # (study, trace) -> where, sentence, beside a trace's figures
    findings: Callable[[Study, str], list[tuple[str, str]]] = lambda *_: []


SECTIONS: Table[Section] = Table(
    "hopmap",
    {
        "suites": "scenarios.studies.suite_section:SECTION",
        "published": "scenarios.studies.published:PUBLISHED",
        "relations": "scenarios.studies.relations:RELATIONS",
    },
)


def with_figures(study: Study) -> Section | None:
    """Return the section whose figures stand instead of those of the traces, if there is one."""
    return next((found for found in SECTIONS.values() if found.count(study)), None)
