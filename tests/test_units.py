"""Quantities with units."""

import pytest

from hopmap.units import (
    NoUnitError,
    UnitError,
    parse_quantity,
    require_unit,
    show_bytes,
    show_seconds,
)
from support import about


def test_quantities_come_out_in_the_base_unit():
    for text, unit, value in [
        ("10 GB/s", "bytes/s", 10e9),
        ("10GB/s", "bytes/s", 10e9),
        ("25 Gbit/s", "bytes/s", 3.125e9),
        ("100 Gbps", "bytes/s", 12.5e9),
        ("1 GiB/s", "bytes/s", 2.0**30),
        ("1e9 B/s", "bytes/s", 1e9),
        ("0", "s", 0),
        ("1 us", "s", 1e-6),
        ("250 ns", "s", 250e-9),
        ("0.5 µs", "s", 0.5e-6),
        ("8 KiB", "bytes", 8192),
        ("8 kB", "bytes", 8000),
        ("64_000 B", "bytes", 64000),
        ("5 pJ/bit", "J/byte", 40e-12),
        (" 2 ", "1", 2),
        (3, "bytes", 3),
        (0.25, "s", 0.25),
    ]:
        with about(text, unit, value):
            assert parse_quantity(text, unit) == value


@pytest.mark.parametrize(
    ("text", "unit", "message"),
    [
        ("fast", "bytes/s", "'fast': expected bytes/s, like 10 GB/s"),
        ("10 GB", "bytes/s", "unknown unit 'GB'"),
        ("10 Gbyte/s", "bytes/s", "did you mean"),
        ("1 us", "bytes", "unknown unit 'us'"),
        ("", "s", "expected seconds, like 1 us"),
        ("nan", "s", "expected seconds"),
        ("2 x", "1", "expected a number"),
        (True, "s", "expected seconds"),
    ],
)
def test_anything_else_is_refused_with_an_example(text, unit, message):
    with pytest.raises(UnitError, match=message):
        parse_quantity(text, unit)


def test_where_a_unit_is_required_a_number_alone_is_refused_and_zero_is_not():
    for text, unit, words in (
        ("10", "bytes/s", "10: expected a unit, like 10GB/s"),
        ("1e-6", "s", "1e-6: expected a unit, like 1us"),
        ("8192", "bytes", "8192: expected a unit, like 8KiB"),
    ):
        with pytest.raises(NoUnitError, match=f"^{words}$"):
            require_unit(text, unit)
        assert parse_quantity(text, unit) == require_unit(float(text), unit) == float(text)
    assert (require_unit("0", "s"), require_unit("3", "1")) == (0, 3)
    assert require_unit("8 KiB", "bytes") == 8192


def test_times_and_sizes_are_shown_with_three_digits():
    assert [show_seconds(s) for s in (0, 3e-9, 999.7e-9, 1.234e-3, 12.34, 4321)] == [
        "0 s",
        "3 ns",
        "1 us",
        "1.23 ms",
        "12.3 s",
        "4,321 s",
    ]
    assert [show_bytes(b) for b in (0, 999, 1000, 22_128_532_608)] == [
        "0 B",
        "999 B",
        "1 kB",
        "22.1 GB",
    ]
