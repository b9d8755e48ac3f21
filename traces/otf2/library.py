"""libotf2 as the `otf2` wheel carries it, through ctypes: prototypes, error texts, handles.

The wheel's own Python layer turns every event into Python objects. Here the same shared library
is called with plain addresses, so that compiled functions can be its callbacks (reading) or its
callers (writing). A separate `ctypes.CDLL` keeps our prototypes apart from the wheel's.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from hopmap.traces.trace import TraceError

POINTER = ctypes.c_void_p
UINT8, UINT32, UINT64 = ctypes.c_uint8, ctypes.c_uint32, ctypes.c_uint64
TEXT = ctypes.c_char_p
STATUS = ctypes.c_int
COUNT = ctypes.POINTER(UINT64)

SMALLEST_CHUNK, LARGEST_CHUNK = 1 << 18, 1 << 24  # bytes of events or definitions at a time
UNDEFINED_UINT32 = 0xFFFFFFFF
UNDEFINED_UINT64 = 0xFFFFFFFFFFFFFFFF

# Names without "OTF2_": result, then arguments.
_PROTOTYPES: dict[str, tuple[Any, ...]] = {
    "Error_RegisterCallback": (POINTER, POINTER, POINTER),
    "Error_GetDescription": (TEXT, STATUS),
    # reading
    "Reader_Open": (POINTER, TEXT),
    "Reader_Close": (STATUS, POINTER),
    "Reader_SetSerialCollectiveCallbacks": (STATUS, POINTER),
    "Reader_GetChunkSize": (STATUS, POINTER, COUNT, COUNT),
    "Reader_SelectLocation": (STATUS, POINTER, UINT64),
    "Reader_GetGlobalDefReader": (POINTER, POINTER),
    "Reader_RegisterGlobalDefCallbacks": (STATUS, POINTER, POINTER, POINTER, POINTER),
    "Reader_ReadAllGlobalDefinitions": (STATUS, POINTER, POINTER, COUNT),
    "Reader_GetNumberOfGlobalDefinitions": (STATUS, POINTER, COUNT),
    "Reader_OpenDefFiles": (STATUS, POINTER),
    "Reader_CloseDefFiles": (STATUS, POINTER),
    "Reader_GetDefReader": (POINTER, POINTER, UINT64),
    "Reader_ReadAllLocalDefinitions": (STATUS, POINTER, POINTER, COUNT),
    "Reader_OpenEvtFiles": (STATUS, POINTER),
    "Reader_CloseEvtFiles": (STATUS, POINTER),
    "Reader_GetEvtReader": (POINTER, POINTER, UINT64),
    "Reader_RegisterEvtCallbacks": (STATUS, POINTER, POINTER, POINTER, POINTER),
    "Reader_ReadLocalEvents": (STATUS, POINTER, POINTER, UINT64, COUNT),
    "EvtReader_ApplyMappingTables": (STATUS, POINTER, ctypes.c_bool),
    "EvtReader_ApplyClockOffsets": (STATUS, POINTER, ctypes.c_bool),
    "GlobalDefReaderCallbacks_New": (POINTER,),
    "GlobalDefReaderCallbacks_Delete": (None, POINTER),
    "EvtReaderCallbacks_New": (POINTER,),
    "EvtReaderCallbacks_Delete": (None, POINTER),
    # writing
    "Archive_Open": (POINTER, TEXT, TEXT, UINT8, UINT64, UINT64, UINT8, UINT8),
    "Archive_Close": (STATUS, POINTER),
    "Archive_SetFlushCallbacks": (STATUS, POINTER, POINTER, POINTER),
    "Archive_SetSerialCollectiveCallbacks": (STATUS, POINTER),
    "Archive_SetCreator": (STATUS, POINTER, TEXT),
    "Archive_OpenDefFiles": (STATUS, POINTER),
    "Archive_CloseDefFiles": (STATUS, POINTER),
    "Archive_GetDefWriter": (POINTER, POINTER, UINT64),
    "Archive_OpenEvtFiles": (STATUS, POINTER),
    "Archive_CloseEvtFiles": (STATUS, POINTER),
    "Archive_GetEvtWriter": (POINTER, POINTER, UINT64),
    "Archive_GetGlobalDefWriter": (POINTER, POINTER),
    "EvtWriter_BufferFlush": (STATUS, POINTER, POINTER, UINT64, UINT64),
    "EvtWriter_MeasurementOnOff": (STATUS, POINTER, POINTER, UINT64, UINT8),
    "GlobalDefWriter_WriteClockProperties": (STATUS, POINTER, UINT64, UINT64, UINT64, UINT64),
    "GlobalDefWriter_WriteParadigm": (STATUS, POINTER, UINT8, UINT32, UINT8),
    "GlobalDefWriter_WriteString": (STATUS, POINTER, UINT32, TEXT),
    "GlobalDefWriter_WriteSystemTreeNode": (STATUS, POINTER, UINT32, UINT32, UINT32, UINT32),
    "GlobalDefWriter_WriteSystemTreeNodeProperty": (STATUS, POINTER, UINT32, UINT32, UINT8, UINT64),
    "GlobalDefWriter_WriteLocationGroup": (STATUS, POINTER, UINT32, UINT32, UINT8, UINT32, UINT32),
    "GlobalDefWriter_WriteLocation": (STATUS, POINTER, UINT64, UINT32, UINT8, UINT64, UINT32),
    "GlobalDefWriter_WriteRegion": (
        *(STATUS, POINTER, UINT32, UINT32, UINT32, UINT32, UINT8, UINT8),
        *(UINT32, UINT32, UINT32, UINT32),
    ),
    "GlobalDefWriter_WriteGroup": (
        *(STATUS, POINTER, UINT32, UINT32, UINT8, UINT8, UINT32, UINT32, POINTER),
    ),
    "GlobalDefWriter_WriteComm": (STATUS, POINTER, UINT32, UINT32, UINT32, UINT32, UINT32),
    "GlobalDefWriter_WriteRmaWin": (STATUS, POINTER, UINT32, UINT32, UINT32, UINT32),
    "DefWriter_WriteClockOffset": (STATUS, POINTER, UINT64, ctypes.c_int64, ctypes.c_double),
}


@cache
def _library() -> ctypes.CDLL:
    # Imported late: the wheel loads libotf2 on import, and only traces in OTF2 need it.
    from _otf2 import Config

    return ctypes.CDLL(Config.lib_path())


@cache
def function(name: str) -> Callable[..., Any]:
    """Return a function of libotf2 by its name without "OTF2_"."""
    found = getattr(_library(), f"OTF2_{name}")
    if name in _PROTOTYPES:
        found.restype, *found.argtypes = _PROTOTYPES[name]
    else:
        # Setters of callbacks (of which, address), and what closes a reader or writer (whose, it).
        found.restype, found.argtypes = STATUS, [POINTER, POINTER]
    return found  # type: ignore[no-any-return]


def call(name: str, *arguments: Any) -> Any:
    """Call a function of libotf2 and return what it returns."""
    return function(name)(*arguments)


def address(name: str) -> int:
    """Return the address of a function of libotf2, for compiled callers."""
    return ctypes.cast(getattr(_library(), f"OTF2_{name}"), POINTER).value or 0


def describe(status: int) -> str:
    """Return libotf2's words for an error code."""
    return (call("Error_GetDescription", status) or b"unknown error").decode(errors="replace")


class Complaints(list[str]):
    """What libotf2 had to say, in order; the first is the cause, later ones its consequences."""

    def fail(self, place: str, text: str = "") -> TraceError:
        """Make one `TraceError` line of the first complaint, and forget them all."""
        heard = f"libotf2: {self[0]}" if self else ""
        self.clear()
        return TraceError(f"{place}: " + (f"{text} ({heard})" if text and heard else text or heard))

    def expect(self, status: int, place: str, text: str = "") -> None:
        """Raise unless `status` is success (0); warnings are negative and pass."""
        if status > 0:
            if not self:
                self.append(describe(status))
            raise self.fail(place, text)


_ERROR_CALLBACK = ctypes.CFUNCTYPE(
    STATUS, POINTER, TEXT, UINT64, TEXT, STATUS, TEXT, POINTER
)  # the last one is a va_list, which every ABI numba runs on passes as an address
_one_user = threading.RLock()


@contextmanager
def exclusive() -> Iterator[None]:
    """Keep other threads out of libotf2, which is loaded."""
    _library()
    with _one_user:
        yield


@contextmanager
def listening() -> Iterator[Complaints]:
    """Collect libotf2's complaints instead of having it print them.

    libotf2 has one error callback for the whole process, so one thread uses it at a time; the
    previous callback is put back.
    """
    complaints = Complaints()
    format_text = ctypes.CDLL(None).vsnprintf
    format_text.argtypes = [POINTER, ctypes.c_size_t, TEXT, POINTER]

    def hear(
        _user: int, _file: bytes, _line: int, _function: bytes, code: int, text: bytes, values: int
    ) -> int:
        if len(complaints) < 10:  # a broken file may complain once per record
            buffer = ctypes.create_string_buffer(512)
            format_text(buffer, len(buffer), text, values)
            said = " ".join(buffer.value.decode(errors="replace").split())
            complaints.append(f"{said} [{describe(code)}]" if said else describe(code))
        return code

    callback = _ERROR_CALLBACK(hear)
    with _one_user:
        previous = call("Error_RegisterCallback", callback, None)
        try:
            yield complaints
        finally:
            call("Error_RegisterCallback", previous, None)
