"""Read SimGrid's time-independent traces: an index of the ranks' files, or one file of all ranks.

A line is ``rank action arguments``. Computation is in floating point operations, at 10^9 a second
as hopmap writes them; sizes are bytes, or numbers of a type behind them (`TYPES`), which is
double if ``init`` has an argument. A rank's ``wait`` and ``test`` name source, target and tag, and
are for the oldest such request; ``waitall`` is for all that are open. All collectives are of
MPI_COMM_WORLD; ``init`` and ``finalize`` wait for no other rank.

Source: SimGrid, src/smpi/internals/smpi_replay.cpp and smpi_datatype.cpp; documentation,
"Replaying traces".
"""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from hopmap.arrays import Floats, Ints
from hopmap.traces.foreign.messages import settle
from hopmap.traces.foreign.recognition import START, Recording
from hopmap.traces.foreign.text import Fields, read_fields, read_start, read_whole
from hopmap.traces.foreign.trace_builder import Calls, Groups, trace_of
from hopmap.traces.trace import Trace, TraceError

from .calls import LINE, REGIONS, SILENT, TYPES, Actions, collectives_of, messages_of

_INDEX = re.compile(rb"[^\s#:]+")


def is_tit(start: bytes) -> bool:
    """Whether a file that begins like this has actions."""
    lines = [line for line in start.splitlines()[:20] if line.strip() and line[:1] != b"#"]
    return bool(lines) and all(LINE.match(line) for line in lines[: max(len(lines) - 1, 1)])


def files_of_index(index: Path, start: bytes) -> tuple[Path, ...]:
    """Return the files that an index names, or none if this is no index."""
    lines = [line.strip() for line in start.splitlines() if line.strip()]
    if not lines or not all(_INDEX.fullmatch(line) for line in lines[: max(len(lines) - 1, 1)]):
        return ()
    first = _find_file(index, lines[0].decode("utf-8", "replace"))
    if first is None or first == index or not is_tit(read_start(first, 1 << 12)):
        return ()
    files = []
    for number, name in enumerate(read_whole(index, 1).decode("utf-8", "replace").split(), 1):
        file = _find_file(index, name)
        if file is None:
            raise TraceError(f"{index}: line {number} is {name[:60]!r}: expected an existing file")
        files.append(file)
    return tuple(files)


def _find_file(index: Path, name: str) -> Path | None:
    """File of a name, seen from the index or from where the program ran, in the index's folder."""
    for place in (index.parent / name, index.parent / Path(name).name):
        try:
            if place.is_file():
                return place
        except OSError:  # no name that a file could have
            continue
    return None


FLOPS = 1e9  # a second, as hopmap writes computation
_ACTIONS = (*REGIONS, *SILENT)


class TitSource(Recording):
    """Files of SimGrid's time-independent traces."""

    tool = "tit"
    about = "SimGrid's time-independent traces, an index or the files that it names"
    names_ranks = True

    @staticmethod
    def matches(file: Path, start: bytes) -> bool:
        """Whether a file that begins like this has actions, or names files that have."""
        return is_tit(start) or bool(files_of_index(file, start))

    @staticmethod
    def is_index(file: Path) -> bool:
        """Whether a file names the files of all ranks."""
        return bool(TitSource.files_of_index(file))

    @staticmethod
    def files_of_index(index: Path) -> tuple[Path, ...]:
        """Return the files that an index names."""
        return files_of_index(index, read_start(index, START))

    def calls(self) -> Trace:
        """Read the files of all ranks, or of one that has all."""
        return read_tit(self.files(), self.name)


def read_tit(files: list[Path], name: str) -> Trace:
    """Read the files of all ranks."""
    tables_of_files = [_table(file) for file in files]
    rank = np.concatenate([table[0] for table in tables_of_files])
    ranks = int(rank.max()) + 1
    present = np.bincount(rank, minlength=ranks) if ranks <= len(rank) else np.zeros(1)
    if (present == 0).any():
        missing = int(np.argmin(present))
        raise TraceError(f"{name}: rank {missing} has no actions: expected all below {ranks}")
    everybody = [np.arange(ranks), np.zeros(0, dtype=np.int64)]
    parts, tables, collectives = [], [], []
    first, left = 0, 0
    for r, (fields, rows) in _by_rank(tables_of_files, ranks):
        region, passed, actions = _actions(r, fields, rows, ranks)
        parts.append((region, passed))
        tables.append(messages_of(actions))
        groups = Groups(everybody, r, fields.file)
        collectives += [
            each._replace(call=each.call + first) for each in collectives_of(actions, groups)
        ]
        left += sum(len(actions.by_word[word]) for word in ("comm_size", "comm_split", "comm_dup"))
        first += len(region)
    offsets = np.concatenate(([0], np.cumsum([len(part[0]) for part in parts]))).astype(np.int64)
    region, time = (np.concatenate(column) for column in zip(*parts, strict=True))
    calls = Calls(offsets, region, time, time)
    messages, unknown = settle(tables, calls, time)
    ignored = {
        **unknown,
        "comm_size, comm_split and comm_dup action": left,
    }
    finalize = list(REGIONS).index("finalize")
    ended = sum(bool((part[0] == finalize).any()) for part in parts)
    note = "ends of ranks (no finalize: cut or killed), which are not among the"
    ignored[note] = (ranks - ended) * bool(ended)
    regions = tuple(REGIONS.values())
    return trace_of(name, calls, (*messages, *collectives), regions, everybody, ignored=ignored)


def _table(file: Path) -> tuple[Ints, Fields, Ints]:
    """Rank of each action of a file, its fields, and the lines of the actions."""
    fields = read_fields(file, " \t", squeeze=True)
    if fields.text and not fields.text.endswith((b"\n", b" finalize")):
        raise fields.wrong(len(fields.lines) - 2, "a whole line, which ends: the file is cut")
    rows = np.flatnonzero(fields.counts > 0)
    marks = np.frombuffer(fields.text, dtype=np.uint8)
    rows = rows[marks[fields.begins[fields.lines[rows]]] != ord("#")]
    if not rows.size:
        raise TraceError(f"{file}: no actions: expected lines like 0 send 1 0 100")
    expected = "a rank and an action"
    fields.refuse(rows, fields.counts[rows] < 2, expected)
    rank = fields.numbers(rows, 0, expected)
    fields.refuse(rows, (rank < 0) | (rank >= 2**24), "a rank below 2^24")
    return rank, fields, rows


def _by_rank(tables: list[tuple[Ints, Fields, Ints]], ranks: int) -> Any:
    """Go through ranks: each with its fields and lines."""
    where: dict[int, tuple[Fields, Ints]] = {}
    for rank, fields, rows in tables:
        present = np.flatnonzero(np.bincount(rank))
        order = np.argsort(rank, kind="stable") if len(present) > 1 else np.arange(len(rank))
        edges = np.searchsorted(rank[order], np.append(present, ranks))
        for k, r in enumerate(present.tolist()):
            if r in where:
                raise TraceError(
                    f"{fields.file}: rank {r}, as in {where[r][0].file.name}: expected it once"
                )
            where[r] = fields, rows[order[edges[k] : edges[k + 1]]]
    for r in range(ranks):
        yield r, where[r]


def _actions(own: int, fields: Fields, rows: Ints, ranks: int) -> tuple[Ints, Floats, Actions]:
    """Region and time of each call of a rank, and its actions."""
    action = fields.values[fields.lines[rows] + 1]
    _, example, inverse = np.unique(action, return_index=True, return_inverse=True)
    inverse = inverse.reshape(-1)
    words = [fields.word(int(fields.lines[rows[k]]) + 1).lower() for k in example]
    for word, k in zip(words, example.tolist(), strict=True):
        if word not in _ACTIONS:
            raise fields.wrong(int(rows[k]), f"one of {', '.join(REGIONS)}, compute or sleep")
    # Old traces have capitals within: what is spelled in two ways is one action.
    region = np.array([_ACTIONS.index(word) for word in words], dtype=np.int8)[inverse]
    order = np.argsort(region, kind="stable")
    edges = np.searchsorted(region[order], np.arange(len(_ACTIONS) + 1))

    by_word = {
        word: order[first:behind]
        for word, (first, behind) in zip(_ACTIONS, pairwise(edges.tolist()), strict=True)
    }
    is_call = region < len(REGIONS)
    inits = by_word["init"]
    typed = inits.size and (fields.counts[rows[inits]] > 2).any()
    number = np.cumsum(is_call) - 1
    actions = Actions(own, ranks, fields, rows, number, by_word, TYPES[0] if typed else 1)
    pause = np.zeros(len(rows))
    for word, unit in (("compute", 1 / FLOPS), ("sleep", 1.0)):
        pause[by_word[word]] = actions.reals(word) * unit
    return region[is_call].astype(np.int64), np.cumsum(pause)[is_call], actions
