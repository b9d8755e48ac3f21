"""Traffic of stencils on Cartesian grids: rank v sends to v + s for every vector s of the stencil.

Ranks are numbered as by MPI_Cart_create: row-major, the last dimension varies fastest. At a border
a vector leads out of the grid and is left out, or comes in at the other side where the dimension is
periodic. There the border is not special: a periodic dimension of two has both of its neighbours in
one rank, which gets two messages, and one of a single rank sends to itself (which stays on its
node); so does MPI_Cart_shift.

Source: Lehr, Efficient process mapping for Cartesian topologies, Diplomarbeit TU Wien 2019,
section 2.3 and figure 2.2. "component" is that of the thesis in two dimensions and of its successor
(Hunold, von Kirchbach, Lehr, Schulz, Traeff 2020) in more: every dimension but the last, so that
the grid falls apart. Of "asymmetric" the thesis' text says only that it has (1, 1) and not
(-1, -1): here these are the five points and (1, 1).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import prod
from operator import mul
from pathlib import Path
from typing import NamedTuple

import numpy as np

from hopmap.errors import choice
from hopmap.traces.formats.tables import MOST_DIMENSIONS
from hopmap.traces.safety.memory import require_memory
from hopmap.traces.sources import Source
from hopmap.traces.trace import TraceError
from hopmap.traces.traffic import EXACT, MOST_RANKS, Traffic
from hopmap.units import UnitError, parse_quantity

Vectors = list[list[int]]

MOST = 2**25  # directed edges
BYTES_PER_EDGE = 100  # while they are made
MOST_BOX = 10  # dimensions: there are 3^10 vectors


def star(dimensions: int) -> Vectors:
    """Both neighbours in every dimension: 5 points in two dimensions, 7 in three."""
    steps = np.eye(dimensions, dtype=np.int64)
    return [[int(x) for x in sign * step] for step in steps for sign in (1, -1)]


def box(dimensions: int) -> Vectors:
    """All neighbours, diagonal ones too: 9 points in two dimensions, 27 in three."""
    return [list(v) for v in product((-1, 0, 1), repeat=dimensions) if any(v)]


def component(dimensions: int) -> Vectors:
    """Both neighbours in every dimension but the last."""
    return star(dimensions)[: 2 * max(1, dimensions - 1)]


def hops(dimensions: int) -> Vectors:
    """Neighbours of a star, and those two and three steps away along the first dimension."""
    far = [[distance] + [0] * (dimensions - 1) for distance in (2, -2, 3, -3)]
    return star(dimensions) + far


def edge_detection(_: int) -> Vectors:
    """Horizontal edge detection (Sobel): all neighbours but those straight above and below."""
    return [[x, y] for x in (1, -1) for y in (-1, 0, 1)]


def asymmetric(_: int) -> Vectors:
    """Five points and one diagonal neighbour."""
    return [*star(2), [1, 1]]


# Name: the vectors for a number of dimensions, and the only number that it is for, if any.
STENCILS: dict[str, tuple[Callable[[int], Vectors], int | None]] = {
    "5pt": (star, 2),
    "7pt": (star, 3),
    "9pt": (box, 2),
    "27pt": (box, 3),
    "star": (star, None),
    "box": (box, None),
    "component": (component, None),
    "hops": (hops, None),
    "edge_detection": (edge_detection, 2),
    "asymmetric": (asymmetric, 2),
}


class Stencil(NamedTuple):
    """A checked grid with its stencil."""

    dims: list[int]  # ranks per dimension
    vectors: Vectors  # to the neighbours
    periodic: list[bool]  # of every dimension
    sizes: list[int]  # bytes to each neighbour


def stencil_traffic(
    dims: Sequence[int],
    stencil: str | Sequence[Sequence[int]],
    *,
    periodic: Sequence[bool] | bool = False,
    size: int | Sequence[int] = 1,
) -> Traffic:
    """Traffic of one exchange with all neighbours: a message for each directed edge.

    `dims` are ranks per dimension; the last varies fastest. `stencil` is a name in `STENCILS`, or
    vectors. `periodic` and `size` (bytes to a neighbour) hold for every dimension and vector in
    order, or of all.

    Metadata are "benchmark", "dims", "stencil" (vectors), "stencil_bytes" (of each vector) and
    "periodic"; mappers of Cartesian grids read them. Of the file formats only npz keeps them.

        >>> traffic = stencil_traffic((2, 3), "5pt")
        >>> traffic.dst[traffic.src == 1].tolist()
        [0, 2, 4]
    """
    return traffic_of_stencil(check_stencil(dims, stencil, periodic, size))


def check_stencil(
    dims: Sequence[int],
    stencil: str | Sequence[Sequence[int]],
    periodic: Sequence[bool] | bool,
    size: int | Sequence[int],
) -> Stencil:
    """Check the arguments of `stencil_traffic`, which says what they are."""
    shape = [int(d) for d in dims]
    text = "x".join(map(str, shape))
    if not shape or min(shape) < 1:
        raise TraceError(f"stencil: dims {text}: expected whole numbers of at least 1")
    if len(shape) > MOST_DIMENSIONS:
        raise TraceError(f"stencil: {len(shape)} dimensions: expected at most {MOST_DIMENSIONS}")
    if stencil == "box" and len(shape) > MOST_BOX:
        raise TraceError(f"stencil box has {len(shape)} dimensions: expected at most {MOST_BOX}")
    if prod(shape) > MOST_RANKS:
        raise TraceError(
            f"stencil: dims {text}: {prod(shape)} ranks: expected at most {MOST_RANKS}"
        )
    vectors = _vectors(stencil, len(shape), text)
    around = [periodic] * len(shape) if isinstance(periodic, bool) else list(map(bool, periodic))
    if len(around) != len(shape):
        raise TraceError(
            f"stencil: periodic in {len(around)} dimensions: expected {len(shape)} as in {text}"
        )
    sizes = [size] * len(vectors) if isinstance(size, int) else [int(s) for s in size]
    if len(sizes) != len(vectors) or min(sizes) < 0:
        raise TraceError(
            f"stencil: {':'.join(map(str, sizes))} bytes: expected one number of at least 0, or "
            f"one for each of the {len(vectors)} vectors"
        )
    if prod(shape) * len(vectors) > MOST:
        raise TraceError(f"stencil: {prod(shape) * len(vectors)} edges: expected at most {MOST}")
    return Stencil(shape, vectors, around, sizes)


def traffic_of_stencil(stencil: Stencil) -> Traffic:
    """Traffic of a checked stencil; see `stencil_traffic`. O(edges log edges)."""
    ranks = prod(stencil.dims)
    edges = ranks * len(stencil.vectors)
    require_memory(
        BYTES_PER_EDGE * edges, f"a stencil of {edges:,} edges", "expected a smaller one"
    )
    # Rank by rank, partners in order where no dimension is periodic: there is less to sort.
    strides = [prod(stencil.dims[axis + 1 :]) for axis in range(len(stencil.dims))]
    far = [sum(map(mul, vector, strides)) for vector in stencil.vectors]
    order = sorted(range(len(far)), key=far.__getitem__)
    number = np.arange(ranks, dtype=np.int32).reshape(stencil.dims)
    to = np.repeat(number[..., None], len(order), axis=-1)
    for place, which in enumerate(order):
        partner = to[..., place]
        axes = zip(stencil.vectors[which], stencil.dims, strides, stencil.periodic, strict=True)
        for axis, (step, length, stride, periodic) in enumerate(axes):
            at = np.arange(length)
            moved = ((at + step) % length - at) * stride
            if not periodic:
                moved[(at + step < 0) | (at + step >= length)] = -ranks  # below 0 in any case
            partner += moved.astype(np.int32).reshape(-1, *[1] * (len(strides) - axis - 1))
    there = to.ravel() >= 0
    senders, receivers = np.repeat(number.ravel(), len(order))[there], to.ravel()[there]
    volume = np.tile(np.array(stencil.sizes)[order], ranks)[there]
    metadata = {
        "benchmark": "stencil",
        "dims": stencil.dims,
        "stencil": stencil.vectors,
        "stencil_bytes": stencil.sizes,
        "periodic": stencil.periodic,
    }
    messages = np.ones(len(senders), dtype=np.int64)
    if any(stencil.periodic) or len(set(far)) < len(far) or ranks * sum(stencil.sizes) > EXACT:
        return Traffic.from_pairs(ranks, senders, receivers, messages, volume, metadata)
    return Traffic(ranks, senders, receivers, messages, volume, metadata)


def parse_stencil(text: str) -> Stencil:
    """Read a grid and its stencil in one line: "12x11x8,7pt,periodic=y,bytes=1000".

    Sizes joined by x; a stencil's name, or its vectors like 1:0/-1:0; then, where wanted, periodic
    dimensions (`parse_periodic`) and bytes, one number or one for each vector, joined by colons.
    """
    dims, *rest = text.split(",")
    options = dict(part.partition("=")[::2] for part in rest[1:])
    known = options.keys() <= {"periodic", "bytes"} and all(options.values())
    if not rest or not rest[0] or len(options) < len(rest) - 1 or not known:
        raise TraceError(
            f"stencil {text!r}: expected DIMS,STENCIL and then periodic=..., bytes=..., like "
            "12x11x8,7pt,periodic=y"
        )
    shape = parse_dims(dims)
    sizes = parse_bytes(options.get("bytes", "1"))
    return check_stencil(
        shape,
        parse_vectors(rest[0]),
        parse_periodic(options.get("periodic", "none"), len(shape)),
        sizes if len(sizes) > 1 else sizes[0],
    )


def parse_dims(text: str) -> list[int]:
    """Sizes from text like "12x11x8"."""
    if not re.fullmatch(r"\d{1,9}(x\d{1,9})*", text):
        raise TraceError(f"stencil: dims {text}: expected ranks per dimension, like 12x11x8")
    return [int(d) for d in text.split("x")]


def parse_bytes(text: str) -> list[int]:
    """Bytes from text like "1000" or "8KiB", or like "2000:1000" for two vectors."""
    try:
        sizes = [parse_quantity(size, "bytes") for size in text.split(":")]
    except UnitError:
        sizes = [-1.0]
    if not all(size.is_integer() and 0 <= size < 1e15 for size in sizes):
        raise TraceError(f"stencil: bytes {text}: expected bytes like 8KiB, or several as 8KiB:64")
    return [int(size) for size in sizes]


def parse_vectors(text: str) -> str | Vectors:
    """Vectors from text like "1:0/-1:0"; any other text is a name and stays one."""
    if not re.fullmatch(r"-?\d{1,9}(:-?\d{1,9})*(/-?\d{1,9}(:-?\d{1,9})*)*", text):
        return text
    return [[int(x) for x in vector.split(":")] for vector in text.split("/")]


def parse_periodic(text: str, dimensions: int) -> list[bool]:
    """Which dimensions are periodic: "y", "xz", "all", "none", or as MPI's periods, "010".

    Letters x, y, z, w are the dimensions in order.
    """
    if text in ("all", "none"):
        return [text == "all"] * dimensions
    if re.fullmatch(r"[01]+", text) and len(text) == dimensions:
        return [digit == "1" for digit in text]
    letters = "xyzw"[:dimensions]
    if not text or not set(text) <= set(letters):
        raise TraceError(
            f"stencil: periodic {text}: expected all, none, letters of {letters}, or a 0 or 1 for "
            f"each of the {dimensions} dimensions"
        )
    return [letter in text for letter in letters] + [False] * (dimensions - len(letters))


def _vectors(stencil: str | Sequence[Sequence[int]], dimensions: int, text: str) -> Vectors:
    if isinstance(stencil, str):
        if stencil not in STENCILS:
            known = choice("stencil", stencil, STENCILS)
            raise TraceError(f"{known}, or vectors like 1:0/-1:0")
        build, only = STENCILS[stencil]
        if only not in (None, dimensions):
            raise TraceError(f"stencil {stencil} has {only} dimensions: {text} has {dimensions}")
        return build(dimensions)
    vectors = [[int(x) for x in vector] for vector in stencil]
    if not vectors:
        raise TraceError("stencil: no vectors: expected at least one")
    for vector in vectors:
        if len(vector) != dimensions:
            written = ":".join(map(str, vector))
            raise TraceError(
                f"stencil vector {written} has {len(vector)} dimensions: {text} has {dimensions}"
            )
    return vectors


@dataclass(frozen=True)
class StencilSource(Source):
    """The traffic of an iteration of a stencil, which is sent in one round."""

    kind = "stencil"
    has_program = False
    has_calls = False
    stencil: Stencil = field(hash=False)

    def traffic(self) -> Traffic:
        """Compute who sends how much to whom."""
        return traffic_of_stencil(self.stencil)


def open_stencil(words: str, _: Path | None) -> StencilSource:
    """Return the source that "stencil:WORDS" is."""
    return StencilSource(f"stencil:{words}", parse_stencil(words))
