"""SVG, written by hand: a picture that needs no font, no script and nothing from elsewhere.

All text comes from data and is escaped. Boxes are told apart by their shape as well as by their
colour: operators are round, counted rows have a dashed border, rows asked about a thick one.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from clew.show.picture import (
    BOX_HEIGHT,
    BOX_WIDTH,
    CAPTION,
    DETAIL_SIZE,
    LABEL_SIZE,
    LINE,
    TEXT,
    Picture,
    place,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clew.ask.trace import Trace
    from clew.show.drawing import Drawing
    from clew.show.picture import Box, Curve

_FONT = "'DejaVu Sans', 'Segoe UI', Helvetica, Arial, sans-serif"


def svg(trace: Trace) -> Iterator[str]:
    """Write the drawing of an answer as a file of SVG."""
    yield '<?xml version="1.0" encoding="UTF-8"?>\n'
    yield from draw_svg(trace.drawing())


def draw_svg(drawing: Drawing) -> Iterator[str]:
    """Write a drawing as an element that can also stand in a page."""
    picture = place(drawing)
    width, height = picture.width, picture.height
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img" font-family="{_FONT}">\n'
    )
    yield f"<title>{escape(picture.title)}</title>\n"
    yield f'<g fill="none" stroke="{LINE}" stroke-width="1.2">\n'
    yield from map(_curve, picture.curves)
    yield "</g>\n"
    yield from _captions(picture)
    yield from map(_box, picture.boxes)
    yield "</svg>\n"


def _captions(picture: Picture) -> Iterator[str]:
    for x, y, text in picture.captions:
        yield (
            f'<text x="{x}" y="{y}" text-anchor="middle" font-size="{LABEL_SIZE}" '
            f'font-weight="bold" fill="{CAPTION}">{escape(text)}</text>\n'
        )


def _curve(curve: Curve) -> str:
    x1, y1, x2, y2, bend = curve.x1, curve.y1, curve.x2, curve.y2, curve.bend
    return f'<path d="M{x1} {y1}C{x1 + bend} {y1} {x2 - bend} {y2} {x2} {y2}"/>\n'


def _box(box: Box) -> str:
    node, middle = box.node, box.x + BOX_WIDTH // 2
    radius = BOX_HEIGHT // 2 if node.kind == "step" else 4
    dashes = ' stroke-dasharray="4 3"' if node.kind == "group" else ""
    stroke = "2.5" if node.asked else "1"
    first = box.y + (17 if box.detail else 25)
    second = (
        f'<text x="{middle}" y="{box.y + 32}" font-size="{DETAIL_SIZE}">{escape(box.detail)}</text>'
        if box.detail
        else ""
    )
    return (
        f"<g><title>{escape(box.title)}</title>"
        f'<rect x="{box.x}" y="{box.y}" width="{BOX_WIDTH}" height="{BOX_HEIGHT}" rx="{radius}" '
        f'fill="{box.fill}" stroke="{box.border}" stroke-width="{stroke}"{dashes}/>'
        f'<g fill="{TEXT}" text-anchor="middle">'
        f'<text x="{middle}" y="{first}" font-size="{LABEL_SIZE}">{escape(box.label)}</text>'
        f"{second}</g></g>\n"
    )
