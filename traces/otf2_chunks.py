"""Whether all records of a file of events or definitions are there: a look at its last chunk.

libotf2 takes a file in chunks of the size that the anchor names, each into memory that it does not
clear, and decodes until a mark ends the chunk or the file. In a file that is cut it goes on with
what that memory held before, an older chunk perhaps, as if it were recorded. So the records of the
last chunk are followed here from length to length, at memory speed, until the mark of the end.

Source: the format as libotf2 3 writes it.
"""
# Compiled code: numba infers the types.
# mypy: disable-error-code="no-untyped-def, untyped-decorator"

from __future__ import annotations

from pathlib import Path

import numpy as np
from numba import njit

_HEADER = 18  # bytes: mark, byte order, numbers of the first and the last event
_LITTLE_ENDIAN = ord("B")  # the other is "#"
_END_OF_CHUNK, _END_OF_FILE, _TIMESTAMP = 0, 2, 5
_LONG = 255  # instead of a length: eight bytes of length follow

# Enter, Leave, MpiIsendComplete, MpiIrecvRequest, MpiRequestTest, MpiRequestCancelled, OmpFork,
# OmpTaskCreate, OmpTaskSwitch, OmpTaskComplete: their one number stands there without a length
# before it, and its own first byte is a length, or 255 for "undefined" with nothing behind it.
# Definitions have neither these nor time stamps: the same numbers mean other records there.
_SINGLE_NUMBER = np.zeros(256, dtype=np.bool_)
_SINGLE_NUMBER[[12, 13, 16, 17, 20, 21, 24, 28, 29, 30]] = True


def is_complete(file: Path, chunk_size: int) -> bool:
    """Whether the records in a file of an archive lead to the mark of its end.

    Parameters
    ----------
    file : Path
        Events (``*.evt``) or definitions (``*.def``).
    chunk_size : int
        Bytes; every chunk but the last fills them.
    """
    size = file.stat().st_size
    start = max(size - 1, 0) // chunk_size * chunk_size
    chunk = np.fromfile(file, dtype=np.uint8, offset=start)
    return bool(_leads_to_the_end(chunk, file.suffix == ".evt"))


@njit("boolean(uint8[::1], boolean)", cache=True)
def _leads_to_the_end(chunk, has_events):
    size = np.int64(len(chunk))
    place = np.int64(_HEADER)
    while place < size:
        mark = chunk[place]
        place += 1
        if mark == _END_OF_FILE:
            return True
        if mark == _END_OF_CHUNK:
            return False
        if has_events and mark == _TIMESTAMP:
            place += 8
            continue
        if place >= size:
            return False
        length = np.int64(chunk[place])
        place += 1
        if length == _LONG and has_events and _SINGLE_NUMBER[mark]:
            length = np.int64(0)
        elif length == _LONG:
            if place + 8 > size:
                return False
            length = np.int64(0)
            for digit in range(8):
                at = 7 - digit if chunk[1] == _LITTLE_ENDIAN else digit
                length = length * 256 + np.int64(chunk[place + at])
            if length < 0 or length > size:
                return False
            place += 8
        place += length
    return False
