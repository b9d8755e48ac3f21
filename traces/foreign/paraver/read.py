"""Read Paraver traces (.prv) as Extrae writes them: MPI's events and the communication records.

The first line says the time of the run, the tasks of each application and how many communicators
follow; records are numbers between colons. Of them count here:

* events ``2:cpu:application:task:thread:time:type:value:...``: calls of MPI are the types 50000001
  to 50000005, a value that is not 0 begins one, whose name the .pcf beside the trace has; sizes,
  root and communicator of a collective are the types 50100001 to 50100004 of the same line;
* communications ``3:cpu:application:task:thread:logical and physical send: the same of the
  receiver:size:tag``: the sending call is the one that the logical send lies in, a receive is
  posted where the logical one lies and complete where the physical one does.

The application with most communications and calls of MPI is the program, of several alike the one
with most tasks; tasks are its ranks. Calls of a task's threads stand in order of time. A trace does
not say which call completes an MPI_Isend: MPI_Waitall completes all that are open, other waits that
complete no receive complete the oldest. Communications outside calls make calls of their own.

Sources: Paraver's trace format (tools.bsc.es, "Paraver: trace generation"); Extrae,
src/merger/paraver.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from hopmap.traces.foreign.recognition import Recording
from hopmap.traces.foreign.text import read_fields
from hopmap.traces.foreign.trace_builder import acts_of, trace_of
from hopmap.traces.trace import Trace

from .calls import calls_of, is_nameless, labels_of
from .collectives import collectives_of
from .header import communicators_of, head_of
from .messages import messages_of
from .records import events_of, own_lines


class ParaverSource(Recording):
    """A file of Paraver."""

    tool = "paraver"
    about = "Paraver's .prv, with its .pcf if there is one"
    is_one_file = True

    @staticmethod
    def matches(_: Path, start: bytes) -> bool:
        """Whether a file that begins like this is a trace."""
        return start.startswith(b"#Paraver")

    def read(self, files: list[Path]) -> Trace:
        """Read the file."""
        return read_paraver(files, self.name)


def read_paraver(files: list[Path], name: str) -> Trace:
    """Read a trace.

    Raises
    ------
    TraceError
        A record that is not understood, a task that does not exist, a trace that is cut; the
        message names file and line.
    """
    from hopmap.traces.foreign.text_kernels import EMPTY, INTEGER

    fields = read_fields(files[0], ":")
    first = fields.lines[:-1]
    kinds, values = fields.kinds[first], fields.values[first]
    number = np.where(kinds == INTEGER, values, 0)
    letters = np.frombuffer(fields.text, dtype=np.uint8)[
        np.minimum(fields.begins[first], max(len(fields.text) - 1, 0))
    ]
    head = head_of(fields, number)
    blank = (kinds == EMPTY) & (fields.counts == 1)
    groups = (letters == ord("c")) & ~blank
    known = (letters == ord("#")) | (letters == ord("i")) | groups | blank
    odd = np.flatnonzero(~known & ((number < 1) | (number > 3)))
    if odd.size:
        raise fields.wrong(int(odd[0]), "a record of kind 1, 2 or 3, c, i or #")
    if not fields.text.endswith(b"\n"):
        raise fields.wrong(len(first) - 1, "a whole line, which ends: the trace is cut")
    members, alias = communicators_of(fields, np.flatnonzero(groups), head)
    events, others = own_lines(fields, np.flatnonzero(number == 2), head, 8)
    strand, time, kind, value, line, skipped = events_of(fields, events, head)
    calls, names, row, unended = calls_of(strand, time, kind, value, head, labels_of(files[0]))
    talks, foreign = own_lines(fields, np.flatnonzero(number == 3), head, 15)
    calls, messages, names, outside, before = messages_of(fields, talks, head, calls, names)
    collective, rootless, immediate = collectives_of(
        calls, before[row[0]], row[1], names, kind, value, line, members, alias, files[0]
    )
    ignored = {
        "state": int((number == 1).sum()),
        "event": skipped,
        "event and communication of other applications": others + foreign,
        "calls that do not end, in": unended,
        "communications outside of calls, in": outside,
        "collectives whose root is not told, taken for the first member,": rootless,
        "non-blocking collectives, taken for blocking ones, in": immediate,
        "calls that no .pcf names, left out, in": int(
            np.isin(calls.region, [k for k, word in enumerate(names) if is_nameless(word)]).sum()
        ),
    }
    communicators = [np.arange(head.tasks), np.zeros(0, dtype=np.int64), *members]
    return trace_of(
        name, calls, (*acts_of(messages), collective), names, communicators, ignored=ignored
    )
