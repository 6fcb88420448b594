"""Union: an output row is a row of one input or the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from clew.plan.columns import arranged
from clew.plan.facts import EACH, Facts
from clew.plan.made import Made, find
from clew.plan.node import Annotated, Node

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.model import Exactness
    from clew.plan.algebra import Capture


@dataclass(frozen=True, slots=True)
class Union:
    """Put the rows of two frames together, by position or by name."""

    by_name: bool = False
    allow_missing: bool = False
    kind: ClassVar[str] = "union"
    exactness: ClassVar[Exactness] = "exact"
    facts: ClassVar[Facts] = EACH

    @property
    def label(self) -> str:
        return "by name" if self.by_name else "by position"

    def made_of(self, node: Node, column: str) -> tuple[Made, ...]:
        if self.by_name:
            names = [find(side, column) for side in node.inputs]
        else:
            at = node.columns.index(column)
            names = [side.columns[at] for side in node.inputs]
        found = [Made(side, name) for side, name in enumerate(names) if name is not None]
        return tuple(found) if len(found) == len(node.inputs) else ()

    def annotate(self, inputs: Sequence[Annotated], capture: Capture) -> Annotated:
        first, second = inputs
        one, other = capture.either(first.annotation, second.annotation)
        hidden = one.annotation.columns
        a = arranged(one.apply(first.df, first.hidden), hidden)
        b = arranged(other.apply(second.df, second.hidden), hidden)
        if self.by_name:
            df = a.unionByName(b, allowMissingColumns=self.allow_missing)
            # Columns that only the second frame has come last, behind the hidden ones.
            return Annotated(arranged(df, hidden), one.annotation)
        return Annotated(a.union(b), one.annotation)


def union(first: Node, second: Node) -> Node:
    """Add a union by position."""
    return _checked(Node(Union(), (first, second)))


def union_by_name(first: Node, second: Node, *, allow_missing: bool) -> Node:
    """Add a union by name."""
    return _checked(Node(Union(by_name=True, allow_missing=allow_missing), (first, second)))


def _checked(node: Node) -> Node:
    _ = node.plain.df.schema
    return node
