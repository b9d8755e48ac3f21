"""Actions of a rank as messages and collectives, and the calls that complete them.

All collectives are on MPI_COMM_WORLD.

Source: SimGrid, src/smpi/internals/smpi_replay.cpp and smpi_datatype.cpp.
"""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from hopmap.arrays import Floats, Ints
from hopmap.traces.foreign.text import Fields
from hopmap.traces.foreign.trace_builder import Acts, Groups
from hopmap.traces.matching import Messages
from hopmap.traces.trace import Collective, TraceError, mpi_name

# Bytes of types by number; what is not listed has none that are known.
TYPES = (
    *(8, 4, 1, 2, 8, 4, 1, 8, 1, 1, 2, 4, 8, 8, 16, 4, 1, 1, 2, 4, 8, 1, 2, 4, 8, 8, 16, 32),
    *(8, 8, 8, 16, 16, 8, 8, 8, 16, 16, 4, 4, 8, 16, 8, 16),
)
_CALLS = (
    *("init", "finalize", "send", "isend", "recv", "irecv", "wait", "waitall", "test", "sendrecv"),
    *("barrier", "bcast", "reduce", "allreduce", "alltoall", "alltoallv", "gather", "gatherv"),
    *("scatter", "scatterv", "allgather", "allgatherv", "reducescatter", "scan", "exscan"),
)
REGIONS = {word: f"MPI_{word.capitalize()}" for word in _CALLS}
"""Regions, by the action that each stands for."""
REGIONS["reducescatter"] = "MPI_Reduce_scatter"
SILENT = ("compute", "sleep", "location", "comm_size", "comm_split", "comm_dup")
_WORDS = "|".join((*REGIONS, *SILENT))
LINE = re.compile(rf"\s*\d+\s+({_WORDS})(\s|$)".encode(), re.IGNORECASE)


@dataclass(frozen=True)
class Actions:
    """Actions of a rank."""

    # The rank, and how many there are
    own: int
    ranks: int
    fields: Fields  # of its file
    # (actions,): line of each action, and how many calls of MPI there are before it
    rows: Ints
    number: Ints
    by_word: Mapping[str, Ints]  # actions of each kind
    width: int  # bytes of a number whose type is not named

    def reals(self, word: str) -> Floats:
        """Numbers with points and exponents, the first of each action of a kind."""
        fields, lines = self.fields, self.rows[self.by_word[word]]
        self._expect(lines, 2, f"a number behind {word}")
        values = fields.reals(lines, 2)
        fields.refuse(lines, ~(np.isfinite(values) & (values >= 0)), f"a number >= 0 behind {word}")
        return values

    def whole(self, which: Ints, at: int, text: str) -> Ints:
        """Whole numbers at a place; reals without a fraction are some, too."""
        from hopmap.traces.foreign.text_kernels import INTEGER

        fields, lines = self.fields, self.rows[which]
        self._expect(lines, at, text)
        place = fields.lines[lines] + at
        values = fields.values[place]
        odd = np.flatnonzero(fields.kinds[place] != INTEGER)
        if odd.size:
            real = fields.reals(lines[odd], at)
            fields.refuse(lines[odd], ~((np.abs(real) <= 2**53) & (real == np.floor(real))), text)
            values[odd] = real.astype(np.int64)
        return values

    def _expect(self, lines: Ints, at: int, text: str) -> None:
        counts = self.fields.counts[lines]
        if (counts <= at).any():
            raise self.fields.wrong(int(lines[np.argmin(counts)]), text)

    def whole_or(self, which: Ints, at: int, text: str, other: int) -> Ints:
        """Whole numbers at a place, or another number where a line ends before it."""
        numbers = np.full(len(which), other, dtype=np.int64)
        there = np.flatnonzero(self.fields.counts[self.rows[which]] > at)
        numbers[there] = self.whole(which[there], at, text)
        return numbers

    def widths(self, which: Ints, at: int) -> Ints:
        """Bytes of the types that stand at a place, where there is one."""
        kind = self.whole_or(which, at, "the number of a type", -1)
        named = self.fields.counts[self.rows[which]] > at
        self.fields.refuse(
            self.rows[which],
            named & ((kind < 0) | (kind >= len(TYPES))),
            f"a type below {len(TYPES)}",
        )
        return np.where(named, np.array(TYPES)[kind], self.width)

    def sizes(self, which: Ints, at: int, widths: Ints | int, text: str) -> Ints:
        """Bytes of buffers, from their numbers of a type."""
        number = self.whole(which, at, text)
        self.fields.refuse(
            self.rows[which],
            (number < 0) | (number > 2**53 // np.maximum(widths, 1)),
            f"{text} >= 0",
        )
        return number * widths


def messages_of(of: Actions) -> Messages:
    """List sends and receives of a rank, and the calls that complete them."""
    parts: list[tuple[Any, ...]] = []  # action, sends, peer, tag, size, blocking

    def add(word: str, sends: bool, at: tuple[int, int, int, int], text: str) -> None:
        """Note actions, from the places of partner, tag (0: none), bytes and type."""
        which = of.by_word[word]
        size = of.sizes(which, at[2], of.widths(which, at[3]), text)
        peer = of.whole(which, at[0], text)
        tag = of.whole(which, at[1], text) if at[1] else np.zeros_like(peer)
        flags = np.full(len(which), sends), np.full(len(which), word[0] != "i")
        parts.append((which, flags[0], peer, tag, size, flags[1]))

    for word in ("send", "isend", "recv", "irecv"):
        add(word, "send" in word, (2, 3, 4, 5), f"{word} partner tag bytes")
    for sends, at in ((True, (3, 0, 2, 6)), (False, (5, 0, 4, 7))):
        add("sendrecv", sends, at, "sendrecv bytes target bytes source")
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    order = np.argsort(columns[0], kind="stable")
    ordered: Any = (column[order] for column in columns)
    action, sends_, peer, tag, size, blocking = ordered
    of.fields.refuse(
        of.rows[action], (peer >= of.ranks) | (sends_ & (peer < -2)), f"a partner below {of.ranks}"
    )
    done = np.where(blocking, of.number[action], -1)
    open_ = np.flatnonzero(~blocking)
    done[open_] = _find_completions(of, action[open_], sends_[open_], peer[open_], tag[open_])
    table = Messages(of.number[action], done, sends_, peer, tag, np.zeros_like(peer), size)
    real: Any = (peer >= -1) & ~(sends_ & (peer < 0))
    return Messages(*(column[real] for column in table))


def _find_completions(of: Actions, place: Ints, sends: Any, peer: Ints, tag: Ints) -> Ints:
    """Call that completes each request: the waits of its ends and tag in order, or a waitall."""
    some = np.sort(np.concatenate((of.by_word["wait"], of.by_word["test"])))
    what = "source, target and tag of a request"
    ends = np.stack([of.whole(some, k, what) for k in (2, 3, 4)], axis=1).tolist()
    begun = list(zip(sends.tolist(), peer.tolist(), tag.tolist(), strict=True))
    done = np.full(len(place), -1, dtype=np.int64)
    events = sorted(
        [(int(at), 0, k) for k, at in enumerate(place)]
        + [(int(at), 1, k) for k, at in enumerate(some)]
        + [(int(at), 2, k) for k, at in enumerate(of.by_word["waitall"])]
    )
    queues: defaultdict[tuple[bool, int, int], deque[int]] = defaultdict(deque)
    for at, what_, k in events:
        if what_ == 0:
            queues[begun[k]].append(k)
        elif what_ == 1:
            source, target, label = ends[k]
            sent, got = queues[True, target, label], queues[False, source, label]
            # To oneself both a send and a receive may be meant: the receive is, if it is open.
            is_received = source != of.own or (target == of.own and len(got) > 0)
            if queue := got if is_received else sent:
                done[queue.popleft()] = of.number[at]
        else:
            done[[k for queue in queues.values() for k in queue]] = of.number[at]
            queues.clear()
    return done


# Places of the bytes, of their type and of the root, of collectives with one number of bytes.
_PLAIN: Mapping[str, tuple[int, int, int | None]] = {
    "bcast": (2, 4, 3),
    "reduce": (2, 5, 4),
    "allreduce": (2, 4, None),
    "scan": (2, 4, None),
    "exscan": (2, 4, None),
    "alltoall": (2, 4, None),
    "allgather": (2, 4, None),
    "gather": (2, 5, 4),
    "scatter": (3, 6, 4),
}


def collectives_of(of: Actions, groups: Groups) -> list[Acts]:
    """List collectives of a rank, all on MPI_COMM_WORLD."""
    made, ranks = [], of.ranks

    def add(word: str, part: Ints, total: Ints, root: int | None = None) -> None:
        """Note calls, whose root stands at a place, or is 0 where the line ends before it."""
        which = of.by_word[word]
        if not len(which):
            return
        roots = None if root is None else of.whole_or(which, root, f"{word} with a root", 0)

        def wrong(k: int, expected: str) -> TraceError:
            return of.fields.wrong(int(of.rows[which[k]]), expected)

        operation = Collective[mpi_name(REGIONS[word]).upper()]
        comm = np.zeros(len(which), dtype=np.int64)
        call = of.number[which]
        made.append(groups.collectives(call, operation, comm, part, total, roots, wrong))

    def plain(word: str, at: int) -> Ints:
        return of.sizes(of.by_word[word], at, 1, f"{word} with a number for each rank")

    def add_up(word: str, first: int) -> Ints:
        none = np.zeros(len(of.by_word[word]), dtype=np.int64)
        return sum((plain(word, first + k) for k in range(ranks)), none)

    none = np.zeros(len(of.by_word["barrier"]), dtype=np.int64)
    add("barrier", none, none)
    for word, (at, kind, root) in _PLAIN.items():
        which = of.by_word[word]
        part = of.sizes(which, at, of.widths(which, kind), f"{word} with bytes")
        add(word, part, part, root)
    # Counts of all ranks: type numbers stand behind them.
    for word, own, first, root in (
        ("gatherv", 2, 3, 3 + ranks),
        ("allgatherv", 2, 3, None),
        ("scatterv", 2 + ranks, 2, 3 + ranks),
    ):
        which = of.by_word[word]
        behind = 3 + ranks + (root is not None)
        one, many = of.widths(which, behind), of.widths(which, behind + 1)
        if word == "scatterv":
            one, many = many, one
        part = of.sizes(which, own, one, f"{word} with bytes")
        add(word, part, add_up(word, first) * many, root)
    width = of.widths(of.by_word["reducescatter"], 3 + ranks)
    part = plain("reducescatter", 2 + of.own) * width
    add("reducescatter", part, add_up("reducescatter", 2) * width)
    which = of.by_word["alltoallv"]
    sent, received = (
        add_up("alltoallv", first) * of.widths(which, 4 + 2 * ranks + k)
        for k, first in enumerate((3, 4 + ranks))
    )
    add("alltoallv", sent, received)
    return made
