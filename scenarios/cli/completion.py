"""What TAB completes: names of mappers, networks, engines, scenarios, launchers."""

from __future__ import annotations


def mappers(incomplete: str) -> list[str]:
    """Complete the last mapper of a pipeline."""
    from hopmap.mappers import all_mappers

    before, bar, last = incomplete.rpartition("|")
    space = " " * (len(last) - len(last.lstrip()))
    start = f"{before}{bar}{space}"
    return [f"{start}{name}" for name in sorted(all_mappers()) if name.startswith(last.lstrip())]


def topologies(incomplete: str) -> list[str]:
    """Complete a family, or the name of a preset."""
    from hopmap.topologies import FAMILIES, PRESETS

    known = [*(f"{family}:" for family in FAMILIES), *(f"preset:{name}" for name in PRESETS)]
    return [name for name in known if name.startswith(incomplete)]


def engines(incomplete: str) -> list[str]:
    """Complete an engine."""
    from hopmap.simulator import ENGINES

    return [name for name in ENGINES if name.startswith(incomplete)]


def scenarios(incomplete: str) -> list[str]:
    """Complete a shipped scenario, or a file of the folder."""
    from pathlib import Path

    from hopmap.scenarios.sweep.scenario_files import SHIPPED

    found = [*sorted(SHIPPED), *map(str, sorted(Path().glob(f"{incomplete}*.toml")))]
    return [name for name in found if name.startswith(incomplete)]


def launchers(incomplete: str) -> list[str]:
    """Complete a format to export to."""
    from hopmap.scenarios.launchers.formats import LAUNCHERS

    return [name for name in (*LAUNCHERS, "csv", "maplib") if name.startswith(incomplete)]
