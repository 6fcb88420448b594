"""Steps that hand on the rows they are given, some or all, as they are.

Filter, watermark, alias, order, limit and hints: an output row is an input row, so its annotation
stays. Only the verb differs.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

from pyspark.sql import Column

from clew.exceptions import BeyondRowError, GraphError
from clew.plan.analysis import change, describe
from clew.plan.facts import EACH, AtOnce, Facts, Rows, Watermark, stated
from clew.plan.made import same
from clew.plan.node import Node
from clew.plan.sql import plain_symbols, printed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame

    from clew.model import Exactness
    from clew.plan.algebra import Capture
    from clew.plan.made import Made
    from clew.plan.node import Annotated


_VERBS = frozenset(
    {
        *("filter", "dropna", "alias", "withWatermark", "orderBy", "sortWithinPartitions"),
        *("limit", "offset", "sample", "repartition", "repartitionByRange", "repartitionById"),
        *("coalesce", "hint", "observe", "persist", "cache"),
    }
)

_BEFORE_IDS = frozenset({"filter", "dropna", "withWatermark"})
"""Verbs that leave a source's hidden columns at hand, so that fewer rows need an id."""
_CHOOSING = frozenset({"limit", "offset", "sample"})
"""Verbs whose rows depend on what other rows there are, or on chance."""
_DROPPING = frozenset({"filter", "dropna"})
_APART = frozenset(
    {
        *("filter", "withWatermark", "alias", "orderBy", "sortWithinPartitions", "dropna", "hint"),
        *("repartition", "repartitionByRange", "repartitionById", "coalesce"),
    }
)
"""Verbs that do with each row as they would if there were no others."""
_ROW_BY_ROW = replace(EACH, evaluates=True)


_COPYING = frozenset({"persist", "cache"})
"""Verbs that make Spark hold rows until it is told otherwise."""


@dataclass(slots=True, eq=False)
class Copies:
    """The frames whose rows Spark holds on behalf of one step: plain ones, and annotated ones."""

    frames: list[DataFrame] = field(default_factory=list)
    is_wanted: bool = True

    def add(self, df: DataFrame) -> None:
        """Remember a frame; Spark holds frames of the same meaning once."""
        if not any(each.sameSemantics(df) for each in self.frames):
            self.frames.append(df)

    def forget(self, *, blocking: bool) -> None:
        """Let Spark drop them, and hold none from now on."""
        self.is_wanted = False
        while self.frames:
            self.frames.pop().unpersist(blocking)


@dataclass(frozen=True, slots=True)
class Keep:
    """Call one of Spark's verbs that neither makes new rows nor changes columns."""

    verb: str
    args: tuple[Any, ...] = ()
    options: Mapping[str, Any] | None = None
    copies: Copies = field(default_factory=Copies, init=False, repr=False, compare=False)
    exactness: ClassVar[Exactness] = "exact"

    def __post_init__(self) -> None:
        """Refuse any other method of a frame: a verb may come from a store.

        Raises:
            GraphError: The verb does not hand on rows as they are.
        """
        if self.verb not in _VERBS:
            msg = f"`{self.verb}` is no step that hands on rows as they are."
            raise GraphError(msg)

    @property
    def kind(self) -> str:
        return {"withWatermark": "watermark", "orderBy": "order"}.get(self.verb, self.verb)

    @property
    def label(self) -> str:
        return ", ".join(shown(arg) for arg in self.args)

    @property
    def facts(self) -> Facts:
        if self.verb == "withWatermark":
            column, delay = map(str, self.args)
            return replace(_ROW_BY_ROW, every=True, watermark=Watermark(column, delay))
        if self.verb not in _CHOOSING:
            every = self.verb not in _DROPPING
            return replace(_ROW_BY_ROW, every=every, keeps_apart=self.verb in _APART)
        # Spark counts over all batches; a sample is drawn row by row.
        counts = self.verb != "sample"
        return stated(Rows.CHOSEN, AtOnce(), has_state=counts, repeats=False, evaluates=True)

    @property
    def goes_before_ids(self) -> bool:
        """Whether rows may get the ids of their source behind the step."""
        return self.verb in _BEFORE_IDS

    def made_of(self, node: Node, column: str) -> tuple[Made, ...]:
        return same(node, column)

    def annotate(self, inputs: Sequence[Annotated], capture: Capture) -> Annotated:
        [source] = inputs
        if self.verb in _COPYING and not self.copies.is_wanted:
            return source
        out = source.with_df(getattr(source.df, self.verb)(*self.args, **(self.options or {})))
        if self.verb in _COPYING:
            self.copies.add(out.df)
        return replace(out, alias=self.args[0]) if self.verb == "alias" else out


def shown(value: object) -> str:
    """Write a parameter the way a person would."""
    if isinstance(value, Column):
        return plain_symbols(printed(value))
    if isinstance(value, (list, tuple)):
        return ", ".join(shown(each) for each in value)
    return str(value)


def keep(node: Node, verb: str, *args: object, **options: object) -> Node:
    """Add a step that hands rows on."""
    return _checked(Node(Keep(verb, args, options), (node,)))


def forget(node: Node, *, blocking: bool) -> None:
    """Free what a step made Spark hold, whatever it was annotated with."""
    if isinstance(node.operator, Keep):
        node.operator.copies.forget(blocking=blocking)


def filter_rows(node: Node, condition: Column | str) -> Node:
    """Add a filter whose condition looks at its own row only.

    Raises:
        BeyondRowError: The condition holds a subquery.
    """
    out = _checked(Node(Keep("filter", (condition,)), (node,)))
    beyond = change(out.plain.df, node.plain.df).beyond(["Filter"])
    if beyond:
        raise BeyondRowError(
            "filter",
            describe(beyond),
            'Trace the other table and join with it: `.join(other, on=["key"], how="semi")` keeps '
            'the rows that have a match, `how="anti"` those that have none.',
        )
    return out


def _checked(node: Node) -> Node:
    # Asking for the schema makes Spark analyse the step now, also under Spark Connect.
    _ = node.plain.df.schema
    return node
