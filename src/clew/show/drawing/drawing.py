"""A drawing: nodes in layers, links between them, and what is left out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from clew import show

if TYPE_CHECKING:
    import datetime as dt

    from clew.ask.scope import Direction

Kind = Literal["row", "group", "step"]


@dataclass(frozen=True, slots=True)
class Node:
    """One box of a drawing.

    Attributes:
        key: What tells the node apart, the same in every drawing of the store.
        kind: `row`, `group` for several rows that are counted, or `step` for an operator.
        layer: Its layer, from the left.
        place: Its place in the layer, from the top.
        stream: The stream of the rows; of a step, the query.
        id: The row's id.
        label: A short name: where a row is found, how many rows a group has, what an operator is.
        detail: What else there is to say: a row's content, an operator's parameters.
        count: How many rows it stands for; None for a step.
        asked: Whether the question was about it.
        time: The row's event time, or else the end of its window; of a group, the first.
    """

    key: str
    kind: Kind
    layer: int
    place: int
    stream: str
    id: str | None
    label: str
    detail: str
    count: int | None
    asked: bool
    time: dt.datetime | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the node as plain data that JSON can hold."""
        return {name: show.plain(getattr(self, name)) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class Link:
    """A line of a drawing, in the direction in which rows travel."""

    source: str
    target: str


@dataclass(frozen=True, slots=True, repr=False)
class Drawing:
    """An answer in layers.

    Attributes:
        direction: `backward` or `forward`.
        nodes: The nodes, layer by layer and from top to bottom.
        links: The lines between them; they run through the steps.
        edges: Which rows were made of which: the key of a sink row, and that of a source row. Rows
            that are not shown are known by the key of their group.
        layers: How many layers there are.
        rows: How many rows the answer has, with those asked about and those on the way.
        shown: How many of them have a node of their own.
        beyond: How many are too far away for the depth that was asked for.
    """

    direction: Direction
    nodes: tuple[Node, ...]
    links: tuple[Link, ...]
    edges: tuple[tuple[str, str], ...]
    layers: int
    rows: int
    shown: int
    beyond: int = 0

    @property
    def left_out(self) -> int:
        """How many rows have no node of their own."""
        return self.rows - self.shown

    def to_dict(self) -> dict[str, Any]:
        """Return the drawing as plain data that JSON can hold."""
        return {
            "direction": self.direction,
            "nodes": [each.to_dict() for each in self.nodes],
            "links": [{"source": each.source, "target": each.target} for each in self.links],
            "edges": [list(each) for each in self.edges],
            "layers": self.layers,
            "rows": self.rows,
            "shown": self.shown,
            "left_out": self.left_out,
            "beyond": self.beyond,
        }

    def lines(self) -> list[show.Line]:
        """Show the drawing as text: layer by layer, in the order in which rows travel."""
        rows = show.count(self.rows, "row")
        lines = [show.Line("headline", f"{rows}, {self.shown:,} shown")]
        for layer in range(self.layers):
            here = [each for each in self.nodes if each.layer == layer]
            lines += [_step_line(each) for each in here if each.kind == "step"]
            for stream in dict.fromkeys(each.stream for each in here if each.kind != "step"):
                lines.append(show.Line("header", f"{'  ' * layer}{show.escape(stream)}"))
                lines += [
                    _row_line(each)
                    for each in here
                    if each.kind != "step" and each.stream == stream
                ]
        counted = sum(each.count or 0 for each in self.nodes)
        for number, why in (
            (self.beyond, "further away"),
            (self.rows - self.beyond - counted, "of streams that are not drawn"),
        ):
            lines += [show.Line("note", f"{show.count(number, 'row')} {why}")] if number else []
        return lines

    def __repr__(self) -> str:
        return show.join(self.lines())

    def _repr_html_(self) -> str:
        from clew.show.page import drawing_page

        return drawing_page(self)


def _step_line(node: Node) -> show.Line:
    text = f"{node.label} ({node.detail})" if node.detail else node.label
    return show.Line("note", f"{'  ' * node.layer}-> {show.escape(text)}")


def _row_line(node: Node) -> show.Line:
    mark = "* " if node.asked else "  "
    text = f"{node.label}  {node.detail}" if node.detail else node.label
    part: show.Part = "note" if node.kind == "group" else "row"
    return show.Line(part, f"{'  ' * node.layer}{mark}{show.escape(text)}")
