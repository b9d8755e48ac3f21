"""Figures for people: thousands separators, decimal units, percentages."""

from __future__ import annotations

import math

from hopmap.units import show_bytes, show_seconds

_SECONDS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
_STEPS = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
MISSING = "–"


def _three(value: float) -> str:
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
            return f"{_three(value / scale)} {prefix}"
    return _three(value)


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
            return f"{_three(value / scale)} {unit}"
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
