"""The command header: what MPI programs in C, C++ and Fortran are built with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .console import print_json, say, say_written
from .options import AsJson, check_folder, check_out
from .overwriting import expect_free


def header(
    out: Annotated[Path | None, typer.Option(help="File to write; stdout when left out.")] = None,
    directory: Annotated[
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
    check_folder("--dir", directory)
    if out is not None and directory is not None:
        raise typer.BadParameter("--out and --dir are mutually exclusive")
    texts = {} if out is None else {out: header_text()}
    if directory is not None:
        texts = {directory / name: text for name, text in mpi_files().items()}
        expect_free(*texts)
        directory.mkdir(exist_ok=True)
    for path, text in texts.items():
        write_text(path, text)
    if as_json and directory is not None:
        print_json({"dir": str(directory), "files": [path.name for path in texts]})
    elif as_json:
        print_json({"text": header_text()} if out is None else {"out": str(out)})
    elif not texts:
        say(header_text().rstrip("\n"))
    if not as_json:
        say_written(*texts)
