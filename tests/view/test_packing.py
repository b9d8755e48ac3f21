"""What a page holds: arrays and plain values, compressed."""

import base64
import gzip
import json

import numpy as np
import pytest

from hopmap.view.packing import ALIGNED, pack, smallest

KINDS = {"Uint8Array": "u1", "Uint16Array": "<u2", "Uint32Array": "<u4", "Float64Array": "<f8"}


def unpack(text):
    """Read it as `page.js` does."""
    whole = gzip.decompress(base64.b64decode(text))
    size = int.from_bytes(whole[:4], "little")

    def revive(value):
        if "array" not in value:
            return value
        kind = KINDS[value["array"]]
        assert (4 + size + value["at"]) % ALIGNED == 0  # typed arrays must begin so
        return np.frombuffer(whole, kind, value["length"], 4 + size + value["at"])

    return json.loads(whole[4 : 4 + size], object_hook=revive)


def test_a_page_reads_what_was_packed():
    content = {
        "name": "a → b",
        "one": np.int64(3),
        "runs": [{"few": np.array([1, 2, 255])}, {"more": np.array([0, 70_000, 3])}],
        "times": np.array([0.1, 1e-9]),
        "nothing": np.empty(0, dtype=np.int64),
    }
    found = unpack(pack(content))
    assert found["name"] == "a → b"
    assert found["one"] == 3
    assert found["runs"][0]["few"].tolist() == [1, 2, 255]
    assert found["runs"][1]["more"].tolist() == [0, 70_000, 3]
    assert found["times"].tolist() == [0.1, 1e-9]
    assert found["nothing"].tolist() == []


@pytest.mark.parametrize(
    ("largest", "kind"), [(255, "u1"), (256, "u2"), (65_536, "u4"), (2**32, "f8")]
)
def test_arrays_take_no_more_bytes_than_they_need(largest, kind):
    assert smallest(np.array([0, largest])).dtype == np.dtype(kind)
    assert smallest(np.array([-1, largest])).dtype == np.float64


def test_the_same_content_is_the_same_text():
    assert pack({"a": np.arange(9)}) == pack({"a": np.arange(9)})


def test_what_no_page_can_hold_is_an_error():
    with pytest.raises(TypeError, match="nothing that a page can hold"):
        pack({"a": {1, 2}})
