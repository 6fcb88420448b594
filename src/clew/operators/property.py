"""A property begins, or gets another value: what rows say of the rows that they come from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from pyspark.sql import Column

from clew.exceptions import PropertyError
from clew.operators.keep import shown
from clew.plan.facts import ONE_FOR_ONE, Facts
from clew.plan.made import same
from clew.plan.merge import Merge, merge_of
from clew.plan.node import Annotated, Node

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from clew.model import Exactness
    from clew.plan.algebra import Capture
    from clew.plan.made import Made


@dataclass(frozen=True, slots=True)
class Property:
    """Give each row a value that is merged wherever rows are.

    Attributes:
        name: What the user calls it.
        value: The value, over the row's columns; or a function of the value that the row has.
        merge: How several values become one.
    """

    name: str
    value: Column | Callable[[Column], Column]
    merge: Merge
    kind: ClassVar[str] = "property"
    exactness: ClassVar[Exactness] = "exact"
    facts: ClassVar[Facts] = ONE_FOR_ONE

    @property
    def label(self) -> str:
        value = f" = {shown(self.value)}" if isinstance(self.value, Column) else ""
        return f"{self.name}{value}, merged by {self.merge.name}"

    def made_of(self, node: Node, column: str) -> tuple[Made, ...]:
        return same(node, column)

    def annotate(self, inputs: Sequence[Annotated], capture: Capture) -> Annotated:
        [source] = inputs
        before = source.annotation
        move = capture.begin(before, self.name, self.value, self.merge, source.df)
        return Annotated(
            move.apply(source.df, before.columns), move.annotation, source.references, source.alias
        )


def declared(node: Node) -> dict[str, Merge]:
    """List the properties that rows of a node have."""
    steps = [each.operator for each in node.walk()]
    return {each.name: each.merge for each in steps if isinstance(each, Property)}


def add_property(
    node: Node, name: str, value: Column | Callable[[Column], Column], merge: object | None
) -> Node:
    """Add a property, or give one that is there another value.

    Raises:
        PropertyError: It is not said how values are merged, or it is said twice and differently;
            or a function is given for the value of a property that has none yet.
    """
    known = declared(node).get(name)
    if known is None and merge is None:
        msg = (
            f"property `{name}` begins here, and it is not said how several values become one.\n\n"
            'Write e.g. `.property("sensors", F.col("sensor"), merge="set")`.'
        )
        raise PropertyError(msg)
    if known is None and not isinstance(value, Column):
        msg = (
            f"the value of property `{name}` is given as a function of the value before, and it "
            "has none before.\n\n"
            f'Begin it with a value: `.property("{name}", F.lit(0), merge="sum")`.'
        )
        raise PropertyError(msg)
    chosen = known if merge is None else merge_of(merge)
    assert chosen is not None
    if known is not None and known != chosen:
        msg = (
            f"property `{name}` is merged by {known.name}, and here by {chosen.name}, so its "
            "values would not fit.\n\nLeave `merge` out where a property gets another value, or "
            "choose another name."
        )
        raise PropertyError(msg)
    return Node(Property(name, value, chosen), (node,))
