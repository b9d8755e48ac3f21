"""What cells, links and nodes of a figure say to a mouse that rests on them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

MOST = 1500  # areas of a figure; of more there are none
PIXELS = 96  # CSS, an inch

_SHAPES: WeakKeyDictionary[Figure, list[tuple[Axes, ArrayLike, str]]] = WeakKeyDictionary()


class Tip(NamedTuple):
    """A polygon of a picture in CSS pixels, "x,y,x,y,..." from its upper left, and its words."""

    coords: str
    text: str


def add_tips(axes: Axes, polygons: Iterable[ArrayLike], texts: Sequence[str]) -> None:
    """Say something of polygons, each shape (corners, 2) in the axes' data; the first is on top."""
    figure = axes.get_figure(root=True)
    assert figure is not None
    known = _SHAPES.setdefault(figure, [])
    known += [(axes, corners, text) for corners, text in zip(polygons, texts, strict=True)]


def squares(middles: ArrayLike, half: float) -> list[ArrayLike]:
    """Return a square around each of some points, shape (points, 2)."""
    corners = half * np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]])
    return list(np.asarray(middles)[:, None, :] + corners)


def tips(figure: Figure) -> list[Tip]:
    """Return what `add_tips` was told of a figure, where it is on the page; nothing of too many."""
    shapes = _SHAPES.get(figure, [])
    if len(shapes) > MOST:
        return []
    high = figure.get_figheight() * PIXELS
    found = []
    for axes, corners, text in shapes:
        at = axes.transData.transform(np.asarray(corners, dtype=float)) * PIXELS / figure.dpi
        at[:, 1] = high - at[:, 1]
        found.append(Tip(",".join(str(round(value)) for value in at.ravel()), text))
    return found


def panel(axes: Axes) -> list[int]:
    """Return left, top, width and height of axes in CSS pixels from the picture's upper left."""
    figure = axes.get_figure(root=True)
    assert figure is not None
    box = axes.get_position()
    wide, high = figure.get_size_inches() * PIXELS
    sides = box.x0 * wide, (1 - box.y1) * high, box.width * wide, box.height * high
    return [round(side) for side in sides]
