"""Quantities as people write them ("10 GB/s", "1 us", "8 KiB") into SI base units, and back."""

from __future__ import annotations

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


class UnitError(HopmapError, ValueError):
    """A quantity that cannot be understood; the message says what was expected."""


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
