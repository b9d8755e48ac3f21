"""The command header: what MPI programs in C, C++ and Fortran are built with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .console import print_json, say, say_written
from .options import AsJson, check_folder, check_out


def header(
    out: Annotated[Path | None, typer.Option(help="File to write; stdout when left out.")] = None,
    folder: Annotated[
        Path | None,
        typer.Option(
            "--dir",
            help="Folder for the header, the library that reorders programs as they are, the "
            "benchmark, and files for pkg-config and CMake.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write hopmap_cart.h: the mappers of Cartesian grids for MPI programs in C and C++."""
    from hopmap.mappers.cartesian.mpi import header_text, mpi_files
    from hopmap.traces.safety.atomic_files import write_text

    check_out(out)
    check_out(folder, folder=True)
    check_folder("--dir", folder)
    if out is not None and folder is not None:
        raise typer.BadParameter("--out and --dir are mutually exclusive")
    texts = {} if out is None else {out: header_text()}
    if folder is not None:
        folder.mkdir(exist_ok=True)
        texts = {folder / name: text for name, text in mpi_files().items()}
    for path, text in texts.items():
        write_text(path, text)
    if as_json and folder is not None:
        print_json({"dir": str(folder), "files": [path.name for path in texts]})
    elif as_json:
        print_json({"text": header_text()} if out is None else {"out": str(out)})
    elif not texts:
        say(header_text().rstrip("\n"))
    if not as_json:
        say_written(*texts)
