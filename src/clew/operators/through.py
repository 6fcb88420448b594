"""A function of the user's over whole frames, with an ancestor function beside it.

Nothing shows which rows made which, so the user says it: a condition over a result and an input row
that is true where the one comes from the other, and the columns by which results are told apart.
Nothing is carried while the query runs; afterwards, each step back is a join on the condition.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Literal

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from clew.exceptions import ColumnError, GraphError
from clew.operators.admit import admitted
from clew.operators.groups import key_name
from clew.operators.keep import shown
from clew.plan.algebra import LATE, Members, Related
from clew.plan.columns import named, quote, refuse_reserved, sole, user_columns
from clew.plan.facts import Facts, Rows, WithoutWindow, stated
from clew.plan.node import Annotated, Node

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from clew.model import Exactness
    from clew.plan.algebra import Capture, Typed
    from clew.plan.made import Made


Late = Literal["refuse", "kept"]
_LATE = (
    "a row came after the watermark had passed it, and whether `{}` took it or left it out is not "
    'known. If it takes late rows like others, write `.through(..., late="kept")`.'
)


@dataclass(frozen=True, slots=True)
class Through:
    """Run a function over frames.

    Attributes:
        function: The function: DataFrames in, one out.
        keys: The columns of a result that tell it apart.
        ancestors: For each input, the condition under which a result comes from one of its rows.
        name: What the user calls it.
        late: What it does with late rows of a stream: nobody knows, or they are rows like others.
    """

    function: Callable[..., DataFrame]
    keys: tuple[str, ...]
    ancestors: tuple[Column, ...]
    name: str
    late: Late = "refuse"
    kind: ClassVar[str] = "through"
    exactness: ClassVar[Exactness] = "exact"

    @property
    def label(self) -> str:
        how = "; ".join(shown(each) for each in self.ancestors)
        return f"{self.name} by {', '.join(self.keys)}, from rows where {how}"

    @property
    def facts(self) -> Facts:
        return stated(
            Rows.GATHERED,
            WithoutWindow(),
            rests_on_others=True,
            hands_over_groups=True,
            by_condition=True,
        )

    def made_of(self, node: Node, column: str) -> tuple[Made, ...]:
        return ()

    def annotate(self, inputs: Sequence[Annotated], capture: Capture) -> Annotated:
        taken = [admitted(self._judged(each), None, capture) for each in inputs]
        made = self.function(*[_users(each.df) for each in taken])
        kinds = {f.name: f.dataType for f in made.schema.fields}
        keys: list[Typed] = [(quote(k), kinds[k]) for k in self.keys]
        sides = [
            (each.annotation, partial(self._members, made, each, condition))
            for each, condition in zip(taken, self.ancestors, strict=True)
        ]
        return Annotated(*capture.relate(Related(made, keys, sides)))

    def _judged(self, frame: Annotated) -> Annotated:
        """Stop at a row that may have come too late: whether the function took it is not known."""
        if LATE not in frame.annotation.columns or self.late == "kept":
            return frame
        return frame.with_df(frame.df.filter(self._in_time(frame.df)))

    def _in_time(self, df: DataFrame) -> Column:
        kinds = ((f.name, f.dataType) for f in _users(df).schema.fields)
        times = [named(n) for n, kind in kinds if isinstance(kind, T.TimestampType)]
        late = named(LATE)
        doubtful = late.isNotNull()
        if times:
            # Spark's `least` wants two columns or more.
            earliest = F.least(*times, times[0])
            doubtful = F.coalesce(earliest <= F.timestamp_micros(late), F.lit(False))
        stop = F.raise_error(F.lit(_LATE.format(self.name))).cast("boolean")
        return F.when(doubtful, stop).otherwise(F.lit(True))

    def _members(self, made: DataFrame, source: Annotated, condition: Column) -> Members:
        """Pair results with the input rows that they come from."""
        results, rows = made.alias("result"), source.df.alias("input")
        keys = [F.col(f"result.{quote(k)}").alias(key_name(i)) for i, k in enumerate(self.keys)]
        hidden = [F.col(f"input.{quote(c)}").alias(c) for c in source.annotation.columns]
        pairs = results.join(rows, condition).select(*hidden, *keys)
        kinds = [made.schema[k].dataType for k in self.keys]
        return Members(pairs, [(key_name(i), kind) for i, kind in enumerate(kinds)])


def _users(df: DataFrame) -> DataFrame:
    return df.select(*[named(c) for c in user_columns(df)])


def through(
    nodes: Sequence[Node],
    function: Callable[..., DataFrame],
    keys: Sequence[str],
    ancestors: Sequence[Column | str],
    name: str | None,
    late: Late,
) -> Node:
    """Add a function over frames.

    Raises:
        GraphError: There is not one condition for each input, or the function returns no frame.
        ColumnError: A key is not a column of the results, or a condition names a missing column.
    """
    if len(ancestors) != len(nodes):
        msg = (
            f"`through` has {len(nodes)} inputs and {len(ancestors)} conditions.\n\nSay for each "
            'input which of its rows a result comes from: `ancestors=["result.k = input.k", ...]`.'
        )
        raise GraphError(msg)
    if late not in ("refuse", "kept"):
        msg = f'`late` is "refuse" or "kept"; got {late!r}.'
        raise GraphError(msg)
    conditions = tuple(F.expr(c) if isinstance(c, str) else c for c in ancestors)
    called = str(name or getattr(function, "__name__", "function"))
    operator = Through(function, tuple(keys), conditions, called, late)
    made = function(*[_users(each.plain.df) for each in nodes])
    if not isinstance(made, DataFrame):
        msg = f"the function given to `through` returned {type(made).__name__}, not a DataFrame."
        raise GraphError(msg)
    refuse_reserved(made.columns)
    sole(made.columns, "through", made)
    missing = [k for k in keys if k not in made.columns]
    if missing or not keys:
        what = f"`{missing[0]}`, which the results do not have" if missing else "no column at all"
        msg = (
            f"`key` names {what}; they have {', '.join(f'`{c}`' for c in made.columns)}.\n\n"
            "Name the columns by which results are told apart."
        )
        raise ColumnError(msg)
    for node, condition in zip(nodes, conditions, strict=True):
        _check(made, node, condition)
    return Node(operator, tuple(nodes))


def _check(made: DataFrame, node: Node, condition: Column) -> None:
    """Let Spark look at a condition now, on empty tables, rather than when somebody asks."""
    spark = made.sparkSession
    schemas = (made.schema, T.StructType(node.schema.fields))
    result, row = (spark.createDataFrame([], schema) for schema in schemas)
    _ = result.alias("result").join(row.alias("input"), condition).schema
