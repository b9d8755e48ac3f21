"""What the recorder's library and the reader of its files agree on: numbers and layouts.

The library is compiled with `numbers_text`; `VERSION` changes with anything here or in events.h.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from hopmap.traces.trace import Collective, Kind

VERSION = 2
PAGE = 4096  # bytes of the header
MAGIC = b"hopmaprc"
PART = 0xFFFF  # region of what is a part of the call whose record follows
FIRST_USER_REGION = 0x8000
MYSELF_ROOT = -2  # root of a collective between two groups, at the root itself


class Extra(IntEnum):
    """Kinds of records beside those of `Kind`."""

    PAIR = 64  # bytes to a member in an alltoallv or alltoallw
    REGION_ENTER = 68  # of the program's own; the region is the tag
    REGION_LEAVE = 69
    RECORDING_OFF = 70
    RECORDING_ON = 71
    NOTHING = 255  # a call of which no more is known than that it was made


COUNTS = (
    *("flushes", "flush_ns", "merged_polls", "calls_while_off", "foreign_messages"),
    *("foreign_collectives", "foreign_communicators", "unknown_requests", "freed_requests"),
    *("uncounted_pairs", "lost_regions", "one_sided", "one_sided_bytes", "failed_calls"),
)

HEADER = np.dtype(
    [
        ("magic", "S8"),
        *((name, "u4") for name in ("version", "record_size")),
        *((name, "i4") for name in ("rank", "ranks")),
        *((name, "u8") for name in ("run", "host")),
        *((name, "i4") for name in ("required", "provided")),
        ("clock", [("at", "u8"), ("ahead", "i8")], 2),
        *((name, "i4") for name in ("clocks", "finished", "open", "profile")),
        ("counts", "u8", len(COUNTS)),
        ("collectives", [(name, "u8") for name in ("calls", "sent", "received")], len(Collective)),
    ]
)
RECORD = np.dtype(
    [
        *((name, "u8") for name in ("begin", "end")),
        *((name, "i8") for name in ("size", "received", "request")),
        *((name, "i4") for name in ("comm", "peer", "tag")),
        ("region", "u2"),
        *((name, "u1") for name in ("kind", "operation")),
    ]
)


def numbers_text() -> str:
    """Return the numbers as a header in C."""
    groups = [
        *([(each.name, int(each)) for each in group] for group in (Kind, Extra, Collective)),
        [(name.upper(), place) for place, name in enumerate(COUNTS)],
        [("COUNTS", len(COUNTS)), ("OPERATIONS", len(Collective)), ("VERSION", VERSION)],
    ]
    lines = (", ".join(f"{name} = {number}" for name, number in group) for group in groups)
    return "".join(f"enum {{ {line} }};\n" for line in lines)
