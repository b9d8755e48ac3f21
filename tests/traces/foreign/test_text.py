"""Numbers as they stand in texts of other tools."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopmap.traces.foreign.text import read_fields
from hopmap.traces.foreign.text_kernels import INTEGER
from support.slow import examples


def fields(words):
    with TemporaryDirectory() as folder:
        file = Path(folder) / "x"
        file.write_text("".join(f"{word}\n" for word in words))
        return read_fields(file, " ", squeeze=True)


def reals(words):
    return fields(words).reals(np.arange(len(words)), 0)


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1))
@examples(100)
def test_reals_are_those_of_python(values):
    for write in (repr, "{:.6f}".format, "{:.3e}".format, "{:g}".format):
        words = [write(value) for value in values]
        assert reals(words).tolist() == [float(word) for word in words]


def test_what_is_no_real_is_not_a_number():
    words = ["1e", "e5", ".", "-", "1.2.3", "1_0", "inf", "nan", "0x10", "1e+", "--1"]
    assert np.isnan(reals(words)).all()
    assert reals(["1.", ".5", "+2", "007", "1e-400", "1E2", "9" * 40]).tolist() == [
        *(1.0, 0.5, 2.0, 7.0, 0.0, 100.0, float("9" * 40))
    ]


@pytest.mark.parametrize("value", [2**63 - 1, 2**63, 2**64 - 1, 10**19])
def test_addresses_have_64_bits(value):
    table = fields([value])
    assert table.kinds[0] == INTEGER
    assert int(table.values[0]) % 2**64 == value


@pytest.mark.parametrize("value", [2**64, 2**64 + 1, 10**20, 99999999999999999999])
def test_what_has_more_bits_is_no_number(value):
    assert fields([value]).kinds[0] != INTEGER
