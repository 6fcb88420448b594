"""Unpivot: one row becomes one row for each of its value columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from clew.operators.keep import shown
from clew.plan.columns import is_hidden, named, quote, spelling, user_columns
from clew.plan.facts import EACH, Facts
from clew.plan.made import one_of
from clew.plan.node import Annotated, Node

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.model import Exactness
    from clew.plan.algebra import Capture
    from clew.plan.made import Made


@dataclass(frozen=True, slots=True)
class Unpivot:
    """Turn columns into rows."""

    ids: tuple[Any, ...]
    values: tuple[Any, ...] | None
    variable: str
    value: str
    kind: ClassVar[str] = "unpivot"
    exactness: ClassVar[Exactness] = "exact"
    facts: ClassVar[Facts] = EACH

    @property
    def label(self) -> str:
        return f"by {', '.join(shown(i) for i in self.ids)}"

    def made_of(self, node: Node, column: str) -> tuple[Made, ...]:
        return one_of(node.inputs[0], [shown(each) for each in self.ids], column)

    def annotate(self, inputs: Sequence[Annotated], capture: Capture) -> Annotated:
        [source] = inputs
        ids = [*self.ids, *[named(c) for c in source.hidden]]
        values = list(self.values) if self.values is not None else self._others(source)
        df = source.df.unpivot(ids, values, self.variable, self.value)
        users = [f for f in df.schema.fields if not is_hidden(f.name)]
        move = capture.derive(source.annotation, [(quote(f.name), f.dataType) for f in users])
        out = move.apply(df, source.annotation.columns)
        return Annotated(out, move.annotation, source.references)

    def _others(self, source: Annotated) -> list[Any]:
        spelt = spelling(source.df)
        kept = {spelt(c) for c in source.df.select(*self.ids).columns}
        return [named(c) for c in user_columns(source.df) if spelt(c) not in kept]


def unpivot(node: Node, ids: Any, values: Any, variable: str, value: str) -> Node:
    """Add an unpivot."""
    listed = (ids,) if not isinstance(ids, (list, tuple)) else tuple(ids)
    wanted = None if values is None else values
    if wanted is not None:
        wanted = (wanted,) if not isinstance(wanted, (list, tuple)) else tuple(wanted)
    out = Node(Unpivot(listed, wanted, variable, value), (node,))
    _ = out.plain.df.schema
    return out
