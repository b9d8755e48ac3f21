"""Source files of a module, found by its imports: hopmap's, and files in a plugin's folder.

What was compiled and what was measured are kept under such digests, so that neither outlives the
code that it came from, and a change elsewhere does not cost it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parent
IMPORT = re.compile(rb"^( *)from (\.?)([\w.]*) import (?:\(([^)]*)\)|(.*))", re.MULTILINE)
NAMED = re.compile(rb'"((?:\w+\.)*\w+):\w+"')  # "module:name", as tables of names have them
IMPORTS = re.compile(rb"^ *(?:import|from) (\w+)", re.MULTILINE)  # as plugins name their neighbours


def sources_of(*files: Path, full: bool = False) -> list[Path]:
    """Return the files of modules and of what they import from hopmap or their folder, sorted.

    `full` follows imports within functions as well, and names to where a package that hands them
    on has them from; else what stands at the head and names modules.
    """
    return sorted(set().union(*(_collect(file, full) for file in files)))


@cache
def _collect(file: Path, full: bool) -> frozenset[Path]:
    found, ahead = {file}, [file]
    while ahead:
        new = set(_find_imports(ahead.pop(), full)) - found
        found |= new
        ahead += new
    return frozenset(found)


def digest_of(files: Iterable[Path], start: str = "") -> str:
    """Return a hash of what stands in some files, in their order, and of a text before them."""
    digest = hashlib.blake2b(start.encode(), digest_size=8)
    for file in files:
        digest.update(_read(file) + b"\0")
    return digest.hexdigest()


@cache
def _read(file: Path) -> bytes:
    return file.read_bytes()


@cache
def _find_imports(file: Path, full: bool) -> list[Path]:
    text = _read(file)
    neighbours = (file.with_name(f"{name.decode()}.py") for name in IMPORTS.findall(text))
    found = [each for each in neighbours if each.is_file()]
    if full:  # what a module reads, and what its tables name
        named = [
            folder.joinpath(*name.decode().split("."))
            for name in NAMED.findall(text)
            for folder in (file.parent, file.parent.parent)
        ]
        more = (file.with_suffix(".toml"), *(each.with_suffix(".py") for each in named))
        found += [each for each in more if each.is_file()]
    for indent, dot, module, *lists in IMPORT.findall(
        text if full else text.partition(b"\n\n\n")[0]
    ):
        if (indent and not full) or not (dot or module.startswith(b"hopmap")):
            continue
        target = file.parent if dot else PACKAGE.parent
        target = target.joinpath(*module.decode().split("."))
        if (alone := target.with_suffix(".py")).is_file():
            found.append(alone)
            continue
        for name in re.findall(r"(\w+)(?: as \w+)?", b"".join(lists).decode()):
            if (alone := target / f"{name}.py").is_file():
                found.append(alone)
            elif full:
                found += _find_exports(target / "__init__.pyi").get(name, [])
    return found


@cache
def _find_exports(face: Path) -> dict[str, list[Path]]:
    """Return where a package's names come from."""
    names: dict[str, list[Path]] = {}
    for _, dot, module, *lists in IMPORT.findall(_read(face)) if face.is_file() else ():
        target = face.parent if dot else PACKAGE.parent
        target = target.joinpath(*module.decode().split(".")).with_suffix(".py")
        for name in re.findall(r"(\w+)(?: as \w+)?", b"".join(lists).decode()):
            names[name] = [target]
    return names
