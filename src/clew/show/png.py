"""PNG, drawn with Pillow from the same places as the SVG.

Pillow comes with the extra `png`. DejaVu is used where it is found, since it has most scripts, and
Pillow's own font elsewhere.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

from clew.exceptions import QueryError
from clew.show.picture import (
    BOX_HEIGHT,
    BOX_WIDTH,
    CAPTION,
    DETAIL_SIZE,
    LABEL_SIZE,
    LINE,
    TEXT,
    place,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clew.ask.trace import Trace
    from clew.show.picture import Box, Curve, Picture

_FONTS = {False: "DejaVuSans.ttf", True: "DejaVuSans-Bold.ttf"}
_MOST_PIXELS = 24_000_000
"""A picture that would be larger at twice its size is drawn at its size."""
_POINTS = 24
_DASH = 4


def png(trace: Trace) -> Iterator[bytes]:
    """Draw an answer as PNG.

    Raises:
        QueryError: Pillow is not installed.
    """
    try:
        from PIL import Image, ImageDraw
    except ImportError as error:
        msg = (
            "a PNG is drawn with the package `pillow`, which is not installed.\n\n"
            "Install it: `pip install 'clew[png]'`; or write an SVG, which needs nothing."
        )
        raise QueryError(msg) from error
    picture = place(trace.drawing())
    scale = 2 if 4 * picture.width * picture.height <= _MOST_PIXELS else 1
    image = Image.new("RGB", (picture.width * scale, picture.height * scale), "white")
    _Brush(ImageDraw.Draw(image), scale).paint(picture)
    file = io.BytesIO()
    image.save(file, "PNG", optimize=True)
    return iter([file.getvalue()])


class _Brush:
    def __init__(self, draw: Any, scale: int) -> None:
        self._draw = draw
        self._scale = scale
        self._fonts = {
            (size, bold): _font(size * scale, bold=bold)
            for size in (LABEL_SIZE, DETAIL_SIZE)
            for bold in (False, True)
        }

    def paint(self, picture: Picture) -> None:
        for curve in picture.curves:
            self._line(curve)
        for x, y, text in picture.captions:
            self._text(x, y, text, LABEL_SIZE, CAPTION, bold=True)
        for box in picture.boxes:
            self._box(box)

    def _line(self, curve: Curve) -> None:
        ends = [(curve.x1, curve.y1), (curve.x1 + curve.bend, curve.y1)]
        ends += [(curve.x2 - curve.bend, curve.y2), (curve.x2, curve.y2)]
        points = [_bezier(ends, i / _POINTS, self._scale) for i in range(_POINTS + 1)]
        self._draw.line(points, fill=LINE, width=self._scale, joint="curve")

    def _box(self, box: Box) -> None:
        scale, node = self._scale, box.node
        corners = [
            (box.x * scale, box.y * scale),
            ((box.x + BOX_WIDTH) * scale, (box.y + BOX_HEIGHT) * scale),
        ]
        radius = (BOX_HEIGHT // 2 if node.kind == "step" else 4) * scale
        border = None if node.kind == "group" else box.border
        width = 3 * scale if node.asked else scale
        self._draw.rounded_rectangle(corners, radius, fill=box.fill, outline=border, width=width)
        if node.kind == "group":
            self._dashes(box)
        middle = box.x + BOX_WIDTH // 2
        self._text(middle, box.y + (17 if box.detail else 25), box.label, LABEL_SIZE, TEXT)
        if box.detail:
            self._text(middle, box.y + 32, box.detail, DETAIL_SIZE, TEXT)

    def _dashes(self, box: Box) -> None:
        scale = self._scale
        for x in range(box.x, box.x + BOX_WIDTH, 2 * _DASH):
            for y in (box.y, box.y + BOX_HEIGHT):
                ends = [(x * scale, y * scale), ((x + _DASH) * scale, y * scale)]
                self._draw.line(ends, fill=box.border, width=scale)
        for y in range(box.y, box.y + BOX_HEIGHT, 2 * _DASH):
            for x in (box.x, box.x + BOX_WIDTH):
                ends = [(x * scale, y * scale), (x * scale, (y + _DASH) * scale)]
                self._draw.line(ends, fill=box.border, width=scale)

    def _text(
        self, x: int, y: int, text: str, size: int, colour: str, *, bold: bool = False
    ) -> None:
        where = (x * self._scale, y * self._scale)
        font = self._fonts[size, bold]
        anchor = "ms"  # the middle of the line that letters stand on, as in SVG
        self._draw.text(where, text, fill=colour, font=font, anchor=anchor)


def _font(size: int, *, bold: bool) -> Any:
    from PIL import ImageFont

    try:
        return ImageFont.truetype(_FONTS[bold], size)
    except OSError:
        return ImageFont.load_default(size)


def _bezier(ends: list[tuple[int, int]], part: float, scale: int) -> tuple[float, float]:
    rest = 1 - part
    shares = (rest**3, 3 * rest**2 * part, 3 * rest * part**2, part**3)
    x, y = (
        sum(share * end[axis] for share, end in zip(shares, ends, strict=True)) for axis in (0, 1)
    )
    return x * scale, y * scale
