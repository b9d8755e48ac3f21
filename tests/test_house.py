"""The plan of the house in CONTRIBUTING.md, as far as import-linter does not keep it."""

import ast
import subprocess
from collections import Counter, defaultdict
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from support import ROOT

LINKED = ("traces", "topologies", "mappers", "simulator", "scenarios")
PARTS = (*LINKED, "api", "cli", "figures", "launchers", "report", "validation", "view")
MODULES = {
    ".".join(file.relative_to(ROOT / "hopmap").with_suffix("").parts): file
    for part in PARTS
    for file in sorted((ROOT / "hopmap" / part).rglob("*.py"))
    if file.name != "__init__.py"
}
COMPILES = ("topologies.routing", "simulator.row_pointers", "cli.console")


@cache
def nodes(module):
    """Return the imports of a module, and the names that it reads."""
    tree = ast.parse(MODULES[module].read_text(encoding="utf-8"))
    kinds = (ast.Import, ast.ImportFrom, ast.Name)
    return [node for node in ast.walk(tree) if isinstance(node, kinds)]


@cache
def imports(module):
    """Return what a module imports as (module below hopmap or elsewhere, name in it)."""
    found = []
    for node in nodes(module):
        if isinstance(node, ast.Import):
            found += [(alias.name, "") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = module.rpartition(".")[0] if node.level else ""
            name = ".".join(filter(None, (base, node.module)))
            found += [(name.removeprefix("hopmap."), alias.name) for alias in node.names]
    return found


def place(module):
    """Return the wing, or the module at a package's root."""
    return ".".join(module.split(".")[:2])


@pytest.mark.parametrize("part", PARTS)
def test_wings_of_a_package_import_each_other_in_one_direction(part):
    graph = defaultdict(set)
    for module in MODULES:
        for name, what in imports(module):
            for found in (f"{name}.{what}", name):
                if found in MODULES and module.startswith(f"{part}.") and found.startswith(part):
                    graph[place(module)].add(place(found))
    tuple(TopologicalSorter({k: v - {k} for k, v in graph.items()}).static_order())


def test_modules_import_from_where_things_are_defined_in_their_own_package():
    """A package's face loads all of it, so that asking it from within is a circle."""
    places = {place(module) for module in MODULES}
    asking = [
        (module, what)
        for module in MODULES
        for name, what in imports(module)
        if name == module.partition(".")[0] and f"{name}.{what}" not in places
    ]
    assert asking == []


def test_only_kernels_know_the_compiler():
    knowing = {
        module
        for module in MODULES
        if any(name.partition(".")[0] in ("numba", "llvmlite") for name, _ in imports(module))
    }
    assert {m for m in knowing if not m.endswith("kernels") and m not in COMPILES} == set()


def test_only_the_command_line_prints():
    printing = {
        module
        for module in MODULES
        if any(isinstance(node, ast.Name) and node.id == "print" for node in nodes(module))
    }
    assert printing <= {"cli.console"}


def test_no_folder_of_code_has_more_than_twenty_files():
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listed.returncode:
        pytest.skip("no clone of the repository")
    names = [name for name in listed.stdout.splitlines() if not name.endswith(".pyi")]
    folders = Counter(Path(name).parent for name in names)
    code = (*LINKED, "tests", "benchmarks", "hopmap")
    crowded = {
        str(f): n for f, n in folders.items() if f.parts[:1] and f.parts[0] in code and n > 20
    }
    assert {
        f: n for f, n in crowded.items() if not f.startswith(("tests/data", "scenarios/recorded"))
    } == {}
