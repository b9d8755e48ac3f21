"""The mappers of Cartesian grids for MPI programs in C and Fortran.

The sources here are compiled where MPI is. hopmap_cart.h needs hopmap_coordinates.h;
`header_text` is both as one file. hopmapcart.c is the library that reorders programs as they are,
stencil_bench.c measures exchanges on a cluster.
"""

NAMES = (
    "hopmap_cart.h",
    "hopmap_coordinates.h",
    "hopmapcart.c",
    "stencil_bench.c",
    "hopmapcart.pc",
    "CMakeLists.txt",
)


def mpi_files() -> dict[str, str]:
    """Text of every file, by its name."""
    from importlib.resources import files

    folder = files(__name__)
    return {name: (folder / name).read_text(encoding="utf-8") for name in NAMES}


def header_text() -> str:
    """hopmap_cart.h as a single file."""
    found = mpi_files()
    include = '#include "hopmap_coordinates.h"\n'
    return found["hopmap_cart.h"].replace(include, found["hopmap_coordinates.h"])
