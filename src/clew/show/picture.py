"""Where things stand in a picture of a drawing, in pixels: the same for SVG and PNG.

A layer is a column of boxes, centred. Boxes have one size, and text is cut to fit it, by how wide
its characters are: whoever shows the picture has fonts of their own. Colours are light under dark
text, so that boxes read on a light page as on a dark one; lines and captions are of a grey between.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING

from clew import show

if TYPE_CHECKING:
    from clew.show.drawing import Drawing, Node

BOX_WIDTH = 196
BOX_HEIGHT = 40
LABEL_SIZE = 12
DETAIL_SIZE = 10
TEXT = "#111827"
LINE = "#8b93a1"
CAPTION = "#737b8a"

FILLS = {"row": "#dbeafe", "group": "#e5e7eb", "step": "#dcfce7"}
"""The colour of each kind of box."""
BORDERS = {"row": "#3b82f6", "group": "#6b7280", "step": "#16a34a"}
"""The colour of its border."""
ASKED_FILL, ASKED_BORDER = "#fef3c7", "#d97706"

_MARGIN = 12
_CAPTION_HEIGHT = 22
_COLUMN_GAP = 56
_ROW_GAP = 10
_PADDING = 8
# The widths of characters in a sans-serif font, as parts of its size, on the safe side.
_WIDE, _USUAL, _NARROW = 1.05, 0.6, 0.35
_NARROW_LETTERS = frozenset("iljftI.,:;|!'() ")


@dataclass(frozen=True, slots=True)
class Box:
    """A node in its place.

    Attributes:
        node: The node.
        x, y: Its upper left corner.
        label: Its first line, cut to fit.
        detail: Its second line, cut to fit; empty if there is none.
        title: All there is to say of it.
    """

    node: Node
    x: int
    y: int
    label: str
    detail: str
    title: str

    @property
    def fill(self) -> str:
        """The colour of the box."""
        return ASKED_FILL if self.node.asked else FILLS[self.node.kind]

    @property
    def border(self) -> str:
        """The colour of its border."""
        return ASKED_BORDER if self.node.asked else BORDERS[self.node.kind]


@dataclass(frozen=True, slots=True)
class Curve:
    """A line from the right side of one box to the left side of another."""

    x1: int
    y1: int
    x2: int
    y2: int

    @property
    def bend(self) -> int:
        """How far the curve keeps level at both its ends."""
        return max(abs(self.x2 - self.x1) // 2, 24)


@dataclass(frozen=True, slots=True)
class Picture:
    """A drawing with all its places.

    Attributes:
        width, height: Its size.
        title: What it shows, in a sentence.
        boxes: The nodes.
        curves: The links.
        captions: The names of streams over their layers: x, y and text.
    """

    width: int
    height: int
    title: str
    boxes: tuple[Box, ...]
    curves: tuple[Curve, ...]
    captions: tuple[tuple[int, int, str], ...]


def place(drawing: Drawing) -> Picture:
    """Find the places of all nodes and links of a drawing."""
    layers: list[list[Node]] = [[] for _ in range(drawing.layers)]
    for node in drawing.nodes:
        layers[node.layer].append(node)
    step = BOX_HEIGHT + _ROW_GAP
    tallest = max(map(len, layers), default=0) * step
    boxes: dict[str, Box] = {}
    captions = []
    for number, nodes in enumerate(layers):
        x = _MARGIN + number * (BOX_WIDTH + _COLUMN_GAP)
        top = _MARGIN + _CAPTION_HEIGHT + (tallest - len(nodes) * step) // 2
        streams = dict.fromkeys(show.escape(n.stream) for n in nodes if n.kind != "step")
        if streams:
            text = fit(", ".join(streams), LABEL_SIZE, BOX_WIDTH)
            captions.append((x + BOX_WIDTH // 2, top - _PADDING, text))
        boxes |= {node.key: _box(node, x, top + i * step) for i, node in enumerate(nodes)}
    width = 2 * _MARGIN + len(layers) * (BOX_WIDTH + _COLUMN_GAP) - _COLUMN_GAP
    height = 2 * _MARGIN + _CAPTION_HEIGHT + tallest - _ROW_GAP
    curves = tuple(_curve(boxes[each.source], boxes[each.target]) for each in drawing.links)
    title = _title(drawing)
    return Picture(width, height, title, tuple(boxes.values()), curves, tuple(captions))


def _box(node: Node, x: int, y: int) -> Box:
    label, detail = show.escape(node.label), show.escape(node.detail)
    room = BOX_WIDTH - 2 * _PADDING
    where = f"{show.escape(node.stream)}: " if node.kind != "step" else ""
    asked = " (asked about)" if node.asked else ""
    title = f"{where}{label}{asked}" + (f"\n{detail}" if detail else "")
    return Box(node, x, y, fit(label, LABEL_SIZE, room), fit(detail, DETAIL_SIZE, room), title)


def _curve(source: Box, target: Box) -> Curve:
    middle = BOX_HEIGHT // 2
    return Curve(source.x + BOX_WIDTH, source.y + middle, target.x, target.y + middle)


def _title(drawing: Drawing) -> str:
    what = "Where rows came from" if drawing.direction == "backward" else "What rows led to"
    left = f", {drawing.left_out:,} more counted" if drawing.left_out else ""
    return f"{what}: {show.count(drawing.shown, 'row')} shown{left}"


def fit(text: str, size: int, room: int) -> str:
    """Cut text to a width in pixels, at a font size.

    Examples:
        >>> fit("window 120 seconds", 12, 60), fit("car=7", 12, 60)
        ('window…', 'car=7')
    """
    used, limit = 0.0, room / size
    for i, each in enumerate(text):
        used += _letter_width(each)
        if used > limit:
            return text[: max(i - 1, 0)] + "…"
    return text


def _letter_width(letter: str) -> float:
    if letter in _NARROW_LETTERS:
        return _NARROW
    is_wide = unicodedata.east_asian_width(letter) in "WF" or letter in "mwMW@%"
    return _WIDE if is_wide else _USUAL
