"""Follow the records of a chunk of an OTF2 file, in the format that libotf2 3 writes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hopmap.compilation import njit

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


@njit
def leads_to_the_end(chunk: NDArray[np.uint8], has_events: bool) -> bool:
    """Whether the records of a chunk lead to the mark that ends a file."""
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
