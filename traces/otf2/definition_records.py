"""The global definitions of an OTF2 archive record by record, as they stand in the file."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopmap.traces.trace import TraceError

from .library import POINTER, STATUS, TEXT, UINT8, UINT32, UINT64, Complaints, call


class Location(NamedTuple):
    """A stream of events: a thread, a GPU stream, a set of metrics."""

    reference: int
    kind: int
    events: int
    process: int  # its location group


class Group(NamedTuple):
    """A group as it stands in the file."""

    kind: int
    paradigm: int
    flags: int
    members: NDArray[np.uint64]


@dataclass
class Records:
    """Definitions by their references; what refers to what is not followed."""

    clock: tuple[int, int] | None = None
    strings: dict[int, str] = field(default_factory=dict)
    locations: dict[int, Location] = field(default_factory=dict)
    regions: dict[int, tuple[int, int, int]] = field(default_factory=dict)  # name, role, paradigm
    groups: dict[int, Group] = field(default_factory=dict)
    communicators: dict[int, tuple[int, ...]] = field(default_factory=dict)  # one group or two
    windows: dict[int, int] = field(default_factory=dict)  # communicator

    def _on_clock_properties(self, resolution: int, offset: int, _length: int, _date: int) -> None:
        self.clock = (resolution, offset)

    def _on_string(self, reference: int, text: bytes) -> None:
        self.strings[reference] = text.decode(errors="replace")

    def _on_location(self, reference: int, _name: int, kind: int, events: int, group: int) -> None:
        self.locations[reference] = Location(reference, kind, events, group)

    def _on_region(
        self, reference: int, name: int, _canonical: int, _about: int, role: int, paradigm: int
    ) -> None:
        self.regions[reference] = (name, role, paradigm)

    def _on_group(
        self, reference: int, _name: int, kind: int, paradigm: int, flags: int, size: int, at: int
    ) -> None:
        members = np.zeros(0, dtype=np.uint64)
        if size and at:
            members = np.array((UINT64 * size).from_address(at), dtype=np.uint64)
        self.groups[reference] = Group(kind, paradigm, flags, members)

    def _on_comm(self, reference: int, _name: int, group: int) -> None:
        self.communicators[reference] = (group,)

    def _on_inter_comm(self, reference: int, _name: int, near: int, far: int) -> None:
        self.communicators[reference] = (near, far)

    def _on_rma_win(self, reference: int, _name: int, communicator: int) -> None:
        self.windows[reference] = communicator


# Callback of libotf2, method above, argument types. Trailing arguments nobody asks for are left
# out: in every ABI that numba runs on the caller owns them.
_CALLBACKS: tuple[tuple[str, str, tuple[Any, ...]], ...] = (
    ("ClockProperties", "_on_clock_properties", (UINT64, UINT64, UINT64, UINT64)),
    ("String", "_on_string", (UINT32, TEXT)),
    ("Location", "_on_location", (UINT64, UINT32, UINT8, UINT64, UINT32)),
    ("Region", "_on_region", (UINT32, UINT32, UINT32, UINT32, UINT8, UINT8)),
    ("Group", "_on_group", (UINT32, UINT32, UINT8, UINT8, UINT32, UINT32, POINTER)),
    ("Comm", "_on_comm", (UINT32, UINT32, UINT32)),
    ("InterComm", "_on_inter_comm", (UINT32, UINT32, UINT32, UINT32)),
    ("RmaWin", "_on_rma_win", (UINT32, UINT32, UINT32)),
)


def read_records(reader: int, file: str, complaints: Complaints) -> Records:
    """Read the global definitions of an open archive; `file` is for messages."""
    records = Records()
    failure: list[BaseException] = []

    def guarded(method: Callable[..., None]) -> Callable[..., int]:
        def callback(_user: int | None, *arguments: Any) -> int:
            try:
                method(*arguments)
            except BaseException as error:  # also Ctrl-C: it must not be lost inside libotf2
                failure.append(error)
                return 1
            return 0

        return callback

    callbacks = call("GlobalDefReaderCallbacks_New")
    kept_alive = []
    try:
        for name, method, types in _CALLBACKS:
            prototype = ctypes.CFUNCTYPE(STATUS, POINTER, *types)
            kept_alive.append(prototype(guarded(getattr(records, method))))
            call(f"GlobalDefReaderCallbacks_Set{name}Callback", callbacks, kept_alive[-1])
        definitions = call("Reader_GetGlobalDefReader", reader)
        if not definitions:
            raise complaints.fail(file, "no global definitions")
        try:
            count, expected = UINT64(), UINT64()
            call("Reader_RegisterGlobalDefCallbacks", reader, definitions, callbacks, None)
            status = call(
                "Reader_ReadAllGlobalDefinitions", reader, definitions, ctypes.byref(count)
            )
            if failure and not isinstance(failure[0], Exception):
                raise failure[0]
            if failure:
                raise TraceError(f"{file}: definition {count.value}: {failure[0]!r}")
            complaints.expect(status, file, f"unreadable after {count.value} definitions")
            call("Reader_GetNumberOfGlobalDefinitions", reader, ctypes.byref(expected))
            if count.value != expected.value:
                raise TraceError(
                    f"{file}: {count.value} definitions, the anchor file says {expected.value}"
                )
        finally:
            call("Reader_CloseGlobalDefReader", reader, definitions)
    finally:
        call("GlobalDefReaderCallbacks_Delete", callbacks)
    return records
