"""Steps that compute columns: each output row comes from its own input row.

`select` and `withColumns` take the user's expressions as they are. Before that, Spark's analyser
is asked what is in them: a generator or a sliding `window` makes several rows of one, which is a
move of its own; window functions need a declared partition; aggregates and subqueries are
refused.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from clew.exceptions import BeyondRowError, ColumnError, GraphError
from clew.operators.groups import grouped
from clew.operators.keep import shown
from clew.plan.analysis import analysed, change, describe, explain
from clew.plan.columns import (
    arranged,
    at_hand,
    is_hidden,
    named,
    quote,
    real_name,
    refuse_nameless,
    refuse_reserved,
)
from clew.plan.facts import EACH, ONE_FOR_ONE, Facts, Rows, WithoutEnd, stated
from clew.plan.made import Made, expression, one_of, same, split
from clew.plan.node import Annotated, Node
from clew.plan.sql import printed, quiet

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame

    from clew.model import Exactness
    from clew.plan.algebra import Capture


_RESHAPING = frozenset(
    ("withColumnRenamed", "withColumnsRenamed", "toDF", "to", "drop", "fillna", "replace")
)
_RENAMING = frozenset(("withColumnRenamed", "withColumnsRenamed", "toDF"))
_LEFT_ALONE = (T.TimestampType, T.TimestampNTZType, T.StructType)
_PROBE = "_clew_probe"


_ROW_BY_ROW = replace(EACH, evaluates=True)


@dataclass(frozen=True, slots=True)
class Project:
    """Compute columns row by row.

    Attributes:
        verb: `select` or `withColumns`.
        columns: The user's expressions, by name for `withColumns`.
        multiplies: One row may become several.
        partition: The partition that a window function in the expressions may look at.
        references: Real names of the columns behind `frame["column"]` references.
    """

    verb: str
    columns: tuple[Column | str, ...] | dict[str, Column]
    references: Mapping[str, str]
    multiplies: bool = False
    partition: tuple[str, ...] | None = None

    @property
    def kind(self) -> str:
        if self.partition is not None:
            return "window function"
        return "explode" if self.multiplies else self.verb

    @property
    def facts(self) -> Facts:
        if self.partition is None:
            return replace(_ROW_BY_ROW, every=not self.multiplies)
        return stated(
            Rows.GATHERED, WithoutEnd(), rests_on_others=True, evaluates=True, breaks_ties=True
        )

    @property
    def label(self) -> str:
        if isinstance(self.columns, dict):
            text = ", ".join(f"{name} = {shown(c)}" for name, c in self.columns.items())
        else:
            text = ", ".join(shown(c) for c in self.columns)
        for token, name in self.references.items():
            text = text.replace(token, name)
        return text

    @property
    def exactness(self) -> Exactness:
        return "exact" if self.partition is None else "superset"

    def made_of(self, node: Node, column: str) -> tuple[Made, ...]:
        [before] = node.inputs
        if not isinstance(self.columns, dict):
            return one_of(before, [shown(each) for each in self.columns], column)
        changed = {name.lower(): shown(each) for name, each in self.columns.items()}
        text = changed.get(column.lower())
        return same(node, column) if text is None else (expression(before, split(text)[0]),)

    def annotate(self, inputs: Sequence[Annotated], capture: Capture) -> Annotated:
        [source] = inputs
        out = source.with_df(self._named_well(self._computed(source), source.hidden))
        if self.partition is not None:
            move = capture.spread(out.annotation, grouped(out, [named(c) for c in self.partition]))
        elif self.multiplies:
            users = [f for f in out.df.schema.fields if not is_hidden(f.name)]
            move = capture.derive(out.annotation, [(quote(f.name), f.dataType) for f in users])
        else:
            return out
        return Annotated(
            move.apply(out.df, out.annotation.columns), move.annotation, out.references
        )

    def _computed(self, source: Annotated) -> DataFrame:
        if isinstance(self.columns, dict):
            return source.df.withColumns(self.columns)
        if not source.hidden:
            return source.df.select(*self.columns)
        # A star already brings the hidden columns along.
        brought = set(source.df.select(*self.columns).columns)
        missing = [named(name) for name in source.hidden if name not in brought]
        return source.df.select(*self.columns, *missing)

    def _named_well(self, df: DataFrame, hidden: Sequence[str]) -> DataFrame:
        """Give columns that Spark named after a reference the name the user would have seen."""
        for name in df.columns:
            if name in hidden:
                continue
            better = real_name(name, self.references)
            if better != name:
                df = df.withColumnRenamed(name, better)
        return df


def select(node: Node, columns: Sequence[Column | str], partition: Sequence[str] | None) -> Node:
    """Add a `select`."""
    names = references_of(node)
    probe_stars(node, columns)
    refuse_nameless(columns)
    wanted = tuple(_called(node, column, names) for column in columns)
    return _project(node, "select", wanted, names, partition)


def with_columns(
    node: Node, columns: Mapping[str, Column], partition: Sequence[str] | None
) -> Node:
    """Add or replace columns."""
    refuse_reserved(columns)
    probe_stars(node, list(columns.values()))
    refuse_nameless(columns.values())
    return _project(node, "withColumns", dict(columns), references_of(node), partition)


def _called(node: Node, column: Column | str, references: Mapping[str, str]) -> Column | str:
    """Give a column its name where Spark would call it by a hidden copy, and so would hide it."""
    if isinstance(column, str) or not any(token in str(column) for token in references):
        return column
    with at_hand():
        made = node.plain.df.select(column).columns
    return column.alias(real_name(made[0], references)) if made[0] in references else column


def _project(
    node: Node,
    verb: str,
    columns: tuple[Column | str, ...] | dict[str, Column],
    references: Mapping[str, str],
    partition: Sequence[str] | None,
) -> Node:
    simple = Node(Project(verb, columns, references), (node,))
    out = simple.plain.df
    _refuse_lookalikes(simple)
    difference = change(out, node.plain.df)
    if difference.is_row_wise:
        return simple
    if difference.multiplies:
        return Node(Project(verb, columns, references, multiplies=True), (node,))
    beyond = difference.beyond()
    if set(beyond) <= {"Window", "WithWindowDefinition"} and partition is not None:
        return Node(Project(verb, columns, references, partition=tuple(partition)), (node,))
    raise BeyondRowError(verb, describe(beyond), _INSTEAD.get(beyond[0], _INSTEAD["subquery"]))


_INSTEAD = {
    "Window": "In batch, say which rows it may look at: add "
    '`partition=["column"]` with the columns of its `partitionBy` (`partition=[]` for none). '
    "Each row then traces to every row of its partition, and answers are labelled `superset`. "
    "On a stream use `groupBy(F.window(...))`.",
    "Aggregate": "Write `.groupBy(...).agg(...)`; without keys, `.groupBy().agg(...)`.",
    "Generate": "Write the generator in a `select` of its own, without window functions.",
    "subquery": "Trace the other table with `clew.trace(...)` and join with it.",
}


def probe_stars(node: Node, columns: Sequence[Any], aggregates: Sequence[Column] = ()) -> None:
    """Refuse `*` inside a function: it would take in clew's own columns.

    Raises:
        ColumnError: An expression is made of all columns of the frame.
    """
    for column in (*columns, *aggregates):
        text = printed(column) if isinstance(column, Column) else ""
        if "*" not in text or text == "*" or text.endswith(".*"):
            continue
        probe = node.plain.df.withColumn(_PROBE, F.lit(True))
        with at_hand(), quiet():
            is_aggregate = any(column is each for each in aggregates)
            made = probe.groupBy().agg(column) if is_aggregate else probe.select(column)
        if _PROBE in analysed(explain(made))[0]:
            msg = (
                f"`{shown(column)}` stands for every column, and clew's own are among them while "
                "the query runs.\n\nName the columns: `F.struct(*frame.columns)`."
            )
            raise ColumnError(msg)


def references_of(node: Node) -> dict[str, str]:
    """Map the hidden copies at hand in a frame to the names of the columns they copy."""
    names = {}
    for each in node.walk():
        columns = each.columns if each.referenced else []
        for position in each.referenced:
            names[f"_clew_ref_{each.id}_{position}"] = columns[position]
    return names


@dataclass(frozen=True, slots=True)
class Reshape:
    """Call a verb of Spark's that renames, drops or fills columns, on the user's columns only."""

    verb: str
    args: tuple[Any, ...]
    options: Mapping[str, Any]
    exactness: ClassVar[Exactness] = "exact"
    facts: ClassVar[Facts] = ONE_FOR_ONE

    def __post_init__(self) -> None:
        """Refuse any other method of a frame: a verb may come from a store.

        Raises:
            GraphError: The verb does not only change columns.
        """
        if self.verb not in _RESHAPING:
            msg = f"`{self.verb}` is no step that renames, drops or fills columns."
            raise GraphError(msg)

    @property
    def kind(self) -> str:
        return self.verb

    @property
    def label(self) -> str:
        return ", ".join(shown(arg) for arg in self.args)

    def made_of(self, node: Node, column: str) -> tuple[Made, ...]:
        [before] = node.inputs
        if self.verb in _RENAMING:
            return (Made(0, before.columns[node.columns.index(column)]),)
        if self.verb != "drop" and not _is_left_alone(node, column):
            return ()
        return same(node, column)

    def annotate(self, inputs: Sequence[Annotated], capture: Capture) -> Annotated:
        [source] = inputs
        if self.verb == "toDF":
            out = arranged(source.df, source.hidden).toDF(*self.args, *source.hidden)
        elif self.verb == "to":
            hidden = [source.df.schema[name] for name in source.hidden]
            out = source.df.to(T.StructType([*self.args[0].fields, *hidden]))
        else:
            out = getattr(source.df, self.verb)(*self.args, **self.options)
        return source.with_df(out)


def _is_left_alone(node: Node, column: str) -> bool:
    """Tell whether a column has a type that `fillna` and `replace` do not know, before and after.

    `to` gives a column of the same type back as it was.
    """
    kinds = [f.dataType for each in (node, *node.inputs) for f in each.schema if f.name == column]
    return len(kinds) == 2 and kinds[0] == kinds[1] and isinstance(kinds[0], _LEFT_ALONE)


def reshape(node: Node, verb: str, *args: object, **options: object) -> Node:
    """Add a step that renames, drops or fills columns."""
    out = Node(Reshape(verb, args, options), (node,))
    _refuse_lookalikes(out)
    return out


def _refuse_lookalikes(node: Node) -> None:
    plain = node.plain
    refuse_reserved(name for name in plain.df.columns if name not in plain.hidden)


@dataclass(frozen=True, slots=True)
class DropAt:
    """Drop the columns at some positions, told apart where two share a name."""

    positions: tuple[int, ...]
    names: tuple[str, ...]
    kind: ClassVar[str] = "drop"
    exactness: ClassVar[Exactness] = "exact"
    facts: ClassVar[Facts] = ONE_FOR_ONE

    @property
    def label(self) -> str:
        return ", ".join(self.names)

    def made_of(self, node: Node, column: str) -> tuple[Made, ...]:
        return same(node, column)

    def annotate(self, inputs: Sequence[Annotated], capture: Capture) -> Annotated:
        [source] = inputs
        df = arranged(source.df, source.hidden)
        unique = [f"_clew_at_{i}" for i in range(len(df.columns))]
        kept = [
            named(u).alias(name)
            for i, (u, name) in enumerate(zip(unique, df.columns, strict=True))
            if i not in self.positions
        ]
        return source.with_df(df.toDF(*unique).select(*kept))
