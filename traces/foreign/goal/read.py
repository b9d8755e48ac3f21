"""Read GOAL schedules: the text that txt2bin reads, or the binary that it writes.

Source: Hoefler, Siebert and Lumsdaine, Group operation assembly language, ICPP 2009.
"""

from __future__ import annotations

import re
from pathlib import Path

from hopmap.traces.foreign.files import read_whole
from hopmap.traces.foreign.recognition import Recording
from hopmap.traces.schedule import Schedule
from hopmap.traces.trace import Trace, TraceError
from hopmap.traces.traffic import Traffic

from .binary import is_binary, schedule_of_binary
from .text import schedule_of_text

_PER_BYTE = 8  # bytes of memory that a byte of text takes at least
_TEXT = re.compile(rb"(\s|//[^\n]*\n|/\*.*?\*/)*num_ranks\s", re.DOTALL)


class GoalSource(Recording):
    """A GOAL schedule: operations that wait for each other, in place of calls."""

    kind = "schedule"
    has_calls = False
    is_recorded = False
    tool = "goal"
    about = "GOAL schedules, text or LogGOPSim's binary"
    is_one_file = True

    @staticmethod
    def matches(_: Path, start: bytes) -> bool:
        """Whether a file that begins like this is a schedule."""
        return is_goal(start)

    def schedule(self) -> Schedule:
        """Read the operations."""
        return read_goal(self.files()[0])

    def traffic(self) -> Traffic:
        """Read who sends how much to whom."""
        return self.schedule().traffic()

    def calls(self) -> Trace:
        """Say that calls are not known."""
        raise TraceError(f"{self.path}: a schedule, whose calls are unknown: expected a trace")


def is_goal(start: bytes) -> bool:
    """Whether a file that begins like this is a schedule."""
    return is_binary(start) or _TEXT.match(start) is not None


def read_goal(file: Path) -> Schedule:
    """Read a schedule, text or binary.

    Raises
    ------
    TraceError
        A statement that is not understood, a label that is not there, a part that lies outside the
        file; the message names file and line or rank.
    """
    data = read_whole(file, _PER_BYTE)
    return schedule_of_binary(file, data) if is_binary(data) else schedule_of_text(file, data)
