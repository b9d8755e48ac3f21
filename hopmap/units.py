"""Quantities as people write them ("10 GB/s", "1 us", "8 KiB") into SI base units, and back.

Figures for people have thousands separators, decimal units, percentages.
"""

from __future__ import annotations

import math
import re

from hopmap.errors import HopmapError, did_you_mean

_DECIMAL = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_BINARY = {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40, "Pi": 2.0**50}
_PREFIXES = _DECIMAL | _BINARY
_SMALL = {"": 1.0, "m": 1e-3, "u": 1e-6, "n": 1e-9, "p": 1e-12}
_BYTES = {p + "B": f for p, f in _PREFIXES.items()} | {"bytes": 1.0, "byte": 1.0}
_BITS = {p + b: f / 8 for p, f in _PREFIXES.items() for b in ("bit", "b")}

# What each base unit may be written in. b is a bit and B a byte, as everywhere; k and K are 1000.
UNITS: dict[str, dict[str, float]] = {
    "bytes": _BYTES,
    "s": {
        "s": 1.0,
        "ms": 1e-3,
        "us": 1e-6,
        "µs": 1e-6,
        "μs": 1e-6,
        "ns": 1e-9,
        "ps": 1e-12,
        "min": 60.0,
        "h": 3600.0,
    },
    "bytes/s": {u + "/s": f for u, f in (_BYTES | _BITS).items()}
    | {p + "bps": f / 8 for p, f in _DECIMAL.items()},
    "J/byte": {
        p + "J/" + per: f * factor
        for p, f in _SMALL.items()
        for per, factor in {"B": 1.0, "byte": 1.0, "bit": 8.0}.items()
    },
    "s/byte": {p + "s/" + per: f for p, f in _SMALL.items() for per in ("B", "byte")},
    "W": {"W": 1.0, "kW": 1e3, "mW": 1e-3},
    "flop/s": {p + "flop/s": f for p, f in _DECIMAL.items()},
    "1": {},
}
_EXAMPLES = {
    "bytes": "8 KiB",
    "s": "1 us",
    "bytes/s": "10 GB/s or 25 Gbit/s",
    "J/byte": "5 pJ/bit",
    "s/byte": "0.1 ns/B",
    "W": "100 W",
    "flop/s": "2 Gflop/s",
    "1": "2",
}
_NAMES = {"s": "seconds", "W": "watts", "1": "a number"}
_NUMBER = re.compile(r"\s*([+-]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*(.*?)\s*")
_SECONDS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
_STEPS = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
MISSING = "–"


class UnitError(HopmapError, ValueError):
    """A quantity that cannot be understood; the message says what was expected."""


class NoUnitError(UnitError):
    """A text of a number alone where a unit is needed."""


def parse_quantity(value: str | float, unit: str) -> float:
    """Return a quantity in its base unit, a key of `UNITS`; "1" is that of plain numbers.

    A number is in the base unit already. Raises `UnitError` for a unit of something else.

    Examples
    --------
    >>> parse_quantity("25 Gbit/s", "bytes/s")
    3125000000.0
    >>> parse_quantity("8 KiB", "bytes")
    8192.0
    """
    wanted = f"expected {_NAMES.get(unit, unit)}, like {_EXAMPLES[unit]}"
    if isinstance(value, bool):
        raise UnitError(f"{value}: {wanted}")
    match = None if isinstance(value, int | float) else _NUMBER.fullmatch(value)
    if isinstance(value, str) and match is None:
        raise UnitError(f"{value!r}: {wanted}")
    try:
        number = float(match[1] if match else value)
    except (ValueError, OverflowError):  # 1__0; 10^400
        raise UnitError(f"{value!r}: {wanted}") from None
    if match is None:
        return number
    written = match[2].replace(" ", "")
    if not written:
        return number
    if written not in UNITS[unit]:
        hint = did_you_mean(written, UNITS[unit])
        raise UnitError(f"{value!r}: unknown unit {written!r}{hint}; {wanted}")
    factor = UNITS[unit][written]
    # By the exact reciprocal "250 ns" is 250e-9; times 1e-9 would be off in the last digit.
    return number / round(1 / factor) if factor < 1 else number * factor


def require_unit(value: str | float, unit: str) -> float:
    """Return a quantity as `parse_quantity`; of text, raise `NoUnitError` for a number alone.

    Zero needs no unit.
    """
    number = parse_quantity(value, unit)
    if isinstance(value, str) and number and UNITS[unit] and not has_unit(value):
        example = _EXAMPLES[unit].partition(" or ")[0].replace(" ", "")
        raise NoUnitError(f"{value.strip()}: expected a unit, like {example}")
    return number


def has_unit(value: str | float) -> bool:
    """Whether a quantity says its unit: no number does, and no text of a number alone."""
    match = _NUMBER.fullmatch(value) if isinstance(value, str) else None
    return match is not None and bool(match[2])


def show_seconds(seconds: float) -> str:
    """Write a time for people, three significant digits: "12.3 ms"."""
    return show_seconds_to(3, seconds)


def show_seconds_to(digits: int, seconds: float) -> str:
    """Write a time for people with so many significant digits."""
    for unit, factor in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if abs(seconds) >= 0.9995 * factor:  # 999.9 ns would read 1e+03 ns
            return (
                f"{seconds / factor:.{digits}g} {unit}" if seconds < 1000 else f"{seconds:,.0f} s"
            )
    return "0 s" if seconds == 0 else f"{seconds / 1e-9:.{digits}g} ns"


def show_bytes(count: float) -> str:
    """Write a number of bytes for people, three significant digits: "1.23 GB"."""
    for prefix in ("", "k", "M", "G", "T"):
        if abs(count) < 999.5:
            return f"{count:.3g} {prefix}B"
        count /= 1000
    return f"{count:,.3g} PB"


def show_value(value: float | str, unit: str) -> str:
    """Write a value of a parameter with its unit: "10 GB/s", "1 us"."""
    if isinstance(value, str) or unit not in ("bytes/s", "bytes", "s"):
        return str(value)
    return show_seconds(value) if unit == "s" else show_bytes(value) + unit.removeprefix("bytes")


def _short(value: float) -> str:
    """Three significant digits, no exponent."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def count(value: float | None) -> str:
    """Whole number with separators, "9,052,876"; fractions keep two digits."""
    if value is None or not math.isfinite(value):
        return MISSING
    return f"{value:,.0f}" if value == int(value) else f"{value:,.2f}"


def compact(value: float) -> str:
    """Three digits and a decimal prefix: "9.05 M"."""
    if not math.isfinite(value):
        return MISSING
    for scale, prefix in _STEPS:
        # 999,990,000 would read 1,000 M: the next prefix takes over from there
        if abs(value) >= scale * (1 if scale == 1e3 else 0.9995):
            return f"{_short(value / scale)} {prefix}"
    return _short(value)


def data(value: float | None) -> str:
    """Bytes, decimal: "1.23 GB"."""
    return MISSING if value is None or not math.isfinite(value) else show_bytes(value)


def duration(value: float | None) -> str:
    """Seconds: "12.3 ms", "1,234 s"."""
    if value is None or not math.isfinite(value):
        return MISSING
    return show_seconds(value).replace(" us", " µs")


def runtime(value: float | None) -> str:
    """Seconds to four digits, to tell mappings apart: "387.1 ms"."""
    if value is None or not math.isfinite(value) or value == 0:
        return duration(value)
    scale, unit = time_unit(value)
    shown = value / scale
    return f"{shown:,.0f} {unit}" if shown >= 1000 else f"{shown:.4g} {unit}"


def joules(value: float | None) -> str:
    """Energy: "12.3 mJ", "1.23 kJ"."""
    if value is None or not math.isfinite(value):
        return MISSING
    for scale, unit in ((1e-3, "mJ"), (1e-6, "µJ"), (1e-9, "nJ"), (1e-12, "pJ")):
        if 0 < abs(value) < 1 and (abs(value) >= scale or unit == "pJ"):
            return f"{_short(value / scale)} {unit}"
    shown = compact(value)
    return f"{shown}{'' if shown[-1].isalpha() else ' '}J"


def time_unit(largest: float) -> tuple[float, str]:
    """Seconds and name of the unit in which `largest` reads best."""
    for scale, unit in _SECONDS:
        if largest >= scale:
            return scale, unit
    return _SECONDS[-1]


def change(value: float | None, reference: float | None) -> str:
    """Relative difference with its sign, "−12.3 %", unbreakable; nothing to compare with: "–"."""
    if value is None or reference is None:
        return MISSING
    if not (math.isfinite(value) and math.isfinite(reference)):
        return MISSING
    if reference == 0:
        return "±0 %" if value == 0 else MISSING
    percent = 100 * (value - reference) / reference
    if abs(percent) < 0.05:
        return "±0\u00a0%"
    text = f"{percent:+,.{2 if abs(percent) < 1 else 1}f}\u00a0%"
    return text.replace("-", "−")


def percent(value: float) -> str:
    """Write a share or an excess: 0.123 is "12 %", 0.0123 is "1.2 %"."""
    hundredths = 100 * value
    digits = 0 if hundredths >= 9.95 or hundredths < 0.005 else 1 if hundredths >= 0.095 else 2
    return f"{hundredths:,.{digits}f}\u00a0%"
