"""Arrays and plain values as one text for a page: JSON, then the arrays, compressed."""

from __future__ import annotations

import base64
import gzip
import json
from typing import Any

import numpy as np

TYPES = {"u1": "Uint8Array", "u2": "Uint16Array", "u4": "Uint32Array", "f8": "Float64Array"}
ALIGNED = 8  # bytes, what the largest of these needs


def pack(content: Any) -> str:
    """Return nested dicts and lists with numpy arrays as base64 of gzip.

    The bytes are the length of the JSON, the JSON, and the arrays; in the JSON an array is
    ``{"array": type in JavaScript, "at": byte behind the JSON, "length": elements}``.
    """
    parts: list[bytes] = []
    size = 0

    def place(value: Any) -> Any:
        nonlocal size
        if isinstance(value, np.ndarray):
            narrow = smallest(value)
            data = narrow.astype(narrow.dtype.newbyteorder("<")).tobytes()
            parts.append(data + bytes(-len(data) % ALIGNED))
            at, size = size, size + len(parts[-1])
            kind = TYPES[narrow.dtype.str[1:]]
            return {"array": kind, "at": at, "length": narrow.size}
        if isinstance(value, np.generic):
            return value.item()
        raise TypeError(f"{type(value)} is nothing that a page can hold")

    head = json.dumps(content, default=place, separators=(",", ":")).encode()
    head += b" " * (-(len(head) + 4) % ALIGNED)
    whole = len(head).to_bytes(4, "little") + head + b"".join(parts)
    return base64.b64encode(gzip.compress(whole, 6, mtime=0)).decode()


def smallest(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the same as bytes, or as wider whole numbers, or as float64 where it has to be."""
    if values.dtype.kind in "iub" and (not values.size or values.min() >= 0):
        for kind in (np.uint8, np.uint16, np.uint32):
            if not values.size or values.max() <= np.iinfo(kind).max:
                return values.astype(kind)
    return values.astype(np.float64)
