"""What marks of a figure stand for: shown at the mouse, and by a tap in a report."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import NamedTuple
from weakref import ReferenceType, WeakKeyDictionary, ref

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

MOST = 3200  # areas of a figure that say something to a mouse; of more there are none
REACH = 6  # pixels around a mark that say something of it
PIXELS = 96  # CSS, an inch
Shapes = list[tuple[ReferenceType[Axes], ArrayLike, str]]
_SHAPES: WeakKeyDictionary[Figure, Shapes] = WeakKeyDictionary()


class Tip(NamedTuple):
    """A polygon of a picture in CSS pixels, "x,y,x,y,..." from its upper left, and its words."""

    coords: str
    text: str


def add_tips(axes: Axes, polygons: Iterable[ArrayLike], texts: Sequence[str]) -> None:
    """Say something of polygons, each shape (corners, 2) in the axes' data; the first is on top.

    One corner alone is a mark, two are opposite corners of a rectangle.
    """
    figure = axes.get_figure(root=True)
    assert figure is not None
    known = _SHAPES.setdefault(figure, [])
    own = ref(axes)  # axes hold their figure, which would never go
    known += [(own, corners, text) for corners, text in zip(polygons, texts, strict=True)]


def add_points(axes: Axes, x: ArrayLike, y: ArrayLike, texts: Sequence[str]) -> None:
    """Say something of marks in the axes' data."""
    add_tips(axes, np.column_stack((x, y))[:, None], texts)


def add_lines(axes: Axes, lines: Iterable[ArrayLike], texts: Sequence[str], half: float) -> None:
    """Say something of lines, each shape (points, 2), so far to either side of them."""
    ribbons = []
    for line in lines:
        points = np.asarray(line, dtype=float)
        along = np.gradient(points, axis=0)
        along /= np.maximum(np.hypot(*along.T)[:, None], 1e-9)
        aside = half * np.stack((-along[:, 1], along[:, 0]), axis=1)
        ribbons.append(np.concatenate((points + aside, (points - aside)[::-1])))
    add_tips(axes, ribbons, texts)


def add_bars(axes: Axes, starts: ArrayLike, ends: ArrayLike, texts: Sequence[str]) -> None:
    """Say something of horizontal bars, one a row, the first at 0."""
    pairs = zip(np.asarray(starts).tolist(), np.asarray(ends).tolist(), strict=True)
    boxes = [[(start, y - 0.4), (end, y + 0.4)] for y, (start, end) in enumerate(pairs)]
    add_tips(axes, boxes, texts)


def squares(middles: ArrayLike, half: float) -> list[ArrayLike]:
    """Return a square around each of some points, shape (points, 2)."""
    corners = half * np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]])
    return list(np.asarray(middles)[:, None, :] + corners)


def tips(figure: Figure) -> list[Tip]:
    """Return what a mouse finds on a figure that has been drawn, and where; nothing of too many."""
    shapes = _SHAPES.get(figure, [])
    if len(shapes) > MOST:
        return []
    high = figure.get_figheight() * PIXELS
    found = []
    for own, corners, text in shapes:
        axes = own()
        assert axes is not None
        at = axes.transData.transform(np.asarray(corners, dtype=float)) * PIXELS / figure.dpi
        at[:, 1] = high - at[:, 1]
        if len(at) < 3:
            corners = (at[0] - REACH, at[0] + REACH) if len(at) == 1 else at
            (left, top), (right, bottom) = corners
            at = np.array([[left, top], [right, top], [right, bottom], [left, bottom]])
        found.append(Tip(",".join(str(round(value)) for value in at.ravel()), text))
    return found


def panel(axes: Axes) -> list[int]:
    """Return left, top, width and height in CSS pixels of axes that have been drawn."""
    figure = axes.get_figure(root=True)
    assert figure is not None
    box, scale = axes.get_window_extent(), PIXELS / figure.dpi
    sides = box.x0, figure.bbox.height - box.y1, box.width, box.height
    return [round(side * scale) for side in sides]


def titles(figure: Figure) -> str:
    """Return clear shapes with titles, which browsers show at the mouse, of a drawn figure."""
    if not (found := tips(figure)):
        return ""
    shapes = "".join(
        f'<path d="M{tip.coords}z"><title>{escape(tip.text)}</title></path>\n'
        for tip in reversed(found)
    )
    return f'<g class="tips" transform="scale(.75)" fill="none" pointer-events="all">{shapes}</g>'
