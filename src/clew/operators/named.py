"""Frames with a name: answers can be about their rows, and can stop at them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from clew.exceptions import GraphError
from clew.plan.columns import is_hidden, sole
from clew.plan.facts import ONE_FOR_ONE, Facts
from clew.plan.made import same
from clew.plan.node import Annotated, Node

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.model import Exactness
    from clew.plan.algebra import Capture
    from clew.plan.made import Made


@dataclass(frozen=True, slots=True)
class Named:
    """Give the rows of a frame a stream of their own."""

    name: str
    time: str | None = None
    kind: ClassVar[str] = "named"
    exactness: ClassVar[Exactness] = "exact"
    facts: ClassVar[Facts] = ONE_FOR_ONE

    @property
    def label(self) -> str:
        return self.name

    def made_of(self, node: Node, column: str) -> tuple[Made, ...]:
        return same(node, column)

    def annotate(self, inputs: Sequence[Annotated], capture: Capture) -> Annotated:
        [source] = inputs
        fields = [f for f in source.df.schema.fields if not is_hidden(f.name)]
        columns = [(f.name, f.dataType) for f in fields]
        move = capture.mark(source.annotation, self.name, columns, self.time)
        df = move.apply(source.df, source.annotation.columns)
        return Annotated(df, move.annotation, source.references)


def name_frame(node: Node, name: str) -> Node:
    """Name a frame.

    Raises:
        GraphError: The name is empty, or taken by another frame or source of the pipeline.
    """
    taken = {n.operator.label for n in node.walk() if n.operator.kind in ("source", "named")}
    if not name or name in taken:
        why = "is empty" if not name else "is already the name of a source or frame here"
        msg = f"`.named({name!r})` cannot be used: the name {why}.\n\nChoose another name."
        raise GraphError(msg)
    sole(node.columns, "named", node.plain.df)
    return Node(Named(name), (node,))
