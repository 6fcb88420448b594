"""Small pipelines as data: a tree of dataclasses (`Read`, `Filter`, `Join`, ...) in a `Spec`.

A tree can be printed as the DataFrame code that it stands for. `building` applies it to anything
that has DataFrame's verbs, `batch_model` and `stream_model` evaluate it without Spark. Nothing here
knows how a result is traced.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from properties.expressions import Expr, col, kind_of, to_sql
from properties.row_form import COLUMNS, How, Kind

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, repr=False)
class Node:
    """One operator of a pipeline, with its inputs inside it."""

    def __repr__(self) -> str:
        return describe(self)


@dataclass(frozen=True, repr=False)
class Read(Node):
    """A source. A static source is a table, also in a streaming pipeline."""

    source: str
    static: bool = False


@dataclass(frozen=True, repr=False)
class Watermark(Node):
    """`withWatermark`."""

    child: Node
    delay_seconds: int
    column: str = "ts"


@dataclass(frozen=True, repr=False)
class Filter(Node):
    """`filter`, with a `Column` or with SQL text."""

    child: Node
    condition: Expr
    as_text: bool = False


@dataclass(frozen=True, repr=False)
class WithColumn(Node):
    """`withColumn`: a new column, or another value for one that is there."""

    child: Node
    name: str
    value: Expr


@dataclass(frozen=True, repr=False)
class Select(Node):
    """`select` of named expressions."""

    child: Node
    columns: tuple[tuple[str, Expr], ...]


@dataclass(frozen=True, repr=False)
class Rename(Node):
    """`withColumnRenamed`."""

    child: Node
    old: str
    new: str


@dataclass(frozen=True, repr=False)
class Drop(Node):
    """`drop`."""

    child: Node
    names: tuple[str, ...]


@dataclass(frozen=True, repr=False)
class Explode(Node):
    """`withColumn` of `explode` or `explode_outer`."""

    child: Node
    column: str
    name: str
    outer: bool = False


@dataclass(frozen=True)
class Window:
    """A time window over a timestamp, or over an earlier window's last instant.

    `slide_seconds` is `None` for tumbling windows. For sessions, `size_seconds` is the gap.
    """

    column: str
    size_seconds: int
    slide_seconds: int | None = None
    session: bool = False

    @property
    def name(self) -> str:
        """The column that the window becomes."""
        return "session_window" if self.session else "window"


@dataclass(frozen=True, repr=False)
class WindowColumn(Node):
    """`withColumn` of a time window: a sliding one makes several rows of one."""

    child: Node
    window: Window
    name: str


@dataclass(frozen=True, repr=False)
class Unpivot(Node):
    """`unpivot`: a row for each of some whole numbers, with the name of its column."""

    child: Node
    ids: tuple[str, ...]
    values: tuple[str, ...]
    variable: str = "name"
    value: str = "value"


@dataclass(frozen=True, repr=False)
class Named(Node):
    """clew's `named`; nothing for Spark."""

    child: Node
    name: str


@dataclass(frozen=True, repr=False)
class Union(Node):
    """`union`, or `unionByName`, where asked with columns that one side lacks."""

    left: Node
    right: Node
    by_name: bool = False
    fills: bool = False


@dataclass(frozen=True, repr=False)
class SetOperation(Node):
    """`intersect` or `subtract`."""

    left: Node
    right: Node
    verb: Literal["intersect", "subtract"]


@dataclass(frozen=True, repr=False)
class Distinct(Node):
    """`distinct`."""

    child: Node


@dataclass(frozen=True, repr=False)
class DropDuplicates(Node):
    """`dropDuplicates`, or `dropDuplicatesWithinWatermark`."""

    child: Node
    subset: tuple[str, ...]
    within_watermark: bool = False


@dataclass(frozen=True)
class Agg:
    """One aggregate. `rids` collects the column into a sorted array."""

    fn: Literal["count_all", "count", "sum", "min", "max", "avg", "rids"]
    column: str
    name: str


@dataclass(frozen=True, repr=False)
class Aggregate(Node):
    """`groupBy(window, *keys).agg(...)`; without window and keys, one row for everything."""

    child: Node
    window: Window | None
    keys: tuple[str, ...]
    aggs: tuple[Agg, ...]
    grouping: Literal["groupBy", "rollup", "cube"] = "groupBy"


@dataclass(frozen=True, repr=False)
class Pivot(Node):
    """`groupBy(*keys).pivot(column, values).agg(...)`: a column for each of the values."""

    child: Node
    keys: tuple[str, ...]
    column: str
    values: tuple[str, ...]
    agg: Agg


@dataclass(frozen=True, repr=False)
class Join(Node):
    """An equality join, with `low <= right time - left time <= high` seconds where asked.

    The result has the left columns under their names and the right ones with `prefix`; with
    `using`, the keys appear once. Semi and anti joins have the left columns only.
    """

    left: Node
    right: Node
    how: How
    keys: tuple[str, ...]
    low_seconds: int | None = None
    high_seconds: int | None = None
    using: bool = False
    null_safe: bool = False
    prefix: str = "r_"
    time: str = "ts"


@dataclass(frozen=True, repr=False)
class OrderLimit(Node):
    """`orderBy` then `limit`; the columns identify a row, so nothing is left to chance."""

    child: Node
    by: tuple[tuple[str, bool], ...]
    n: int


Narrow: TypeAlias = (
    Filter | WithColumn | Select | Rename | Drop | Explode | WindowColumn | Unpivot | Named
)
"""Operators that look at one row."""


@dataclass(frozen=True)
class Spec:
    """A pipeline: its last operator, and whether it runs as a stream.

    `sources` lists the streams (in a batch pipeline, the tables) and `statics` the tables that a
    streaming pipeline joins with.
    """

    root: Node
    streaming: bool

    @property
    def sources(self) -> tuple[str, ...]:
        """The sources that come in micro-batches, or all tables of a batch pipeline."""
        return tuple(sorted({n.source for n in walk(self.root) if _is_read(n, static=False)}))

    @property
    def statics(self) -> tuple[str, ...]:
        """The tables that a streaming pipeline joins with."""
        return tuple(sorted({n.source for n in walk(self.root) if _is_read(n, static=True)}))

    def __repr__(self) -> str:
        return f"{'stream' if self.streaming else 'batch'}: {self.root!r}"


def _is_read(node: Node, *, static: bool) -> bool:
    return isinstance(node, Read) and node.static == static


def children(node: Node) -> tuple[Node, ...]:
    """List an operator's inputs, left first."""
    values = (getattr(node, field.name) for field in dataclasses.fields(node))
    return tuple(value for value in values if isinstance(value, Node))


def walk(node: Node) -> Iterator[Any]:
    """Visit every operator below and including this one."""
    yield node
    for child in children(node):
        yield from walk(child)


def columns(node: Node) -> dict[str, Kind]:
    """Tell the columns that an operator produces, in order, with their types."""
    match node:
        case Read():
            return dict(COLUMNS)
        case WithColumn(child, name, value):
            before = columns(child)
            return before | {name: kind_of(value, before)}
        case Select(child, named):
            before = columns(child)
            return {name: kind_of(value, before) for name, value in named}
        case Rename(child, old, new):
            return {new if name == old else name: kind for name, kind in columns(child).items()}
        case Drop(child, names):
            return {name: kind for name, kind in columns(child).items() if name not in names}
        case Explode(child, _, name):
            return columns(child) | {name: "int"}
        case WindowColumn(child, _, name):
            return columns(child) | {name: "window"}
        case Unpivot(child, ids, _, variable, value):
            before = columns(child)
            return {name: before[name] for name in ids} | {variable: "string", value: "int"}
        case Union(left, right):
            return columns(left) | columns(right) if node.fills else columns(left)
        case Pivot(child, keys, _, values, agg):
            made = aggregate_columns(Aggregate(child, None, keys, (agg,)))
            return {key: made[key] for key in keys} | dict.fromkeys(values, made[agg.name])
        case Aggregate():
            return aggregate_columns(node)
        case Join():
            return {name: kind for name, _, _, kind in join_columns(node)}
        case _:
            return columns(children(node)[0])


def aggregate_columns(node: Aggregate) -> dict[str, Kind]:
    before = columns(node.child)
    found: dict[str, Kind] = {} if node.window is None else {node.window.name: "window"}
    found |= {key: before[key] for key in node.keys}
    fixed: dict[str, Kind] = {"avg": "double", "rids": "array", "min": "int", "max": "int"}
    for agg in node.aggs:
        found[agg.name] = fixed.get(agg.fn, "long")
        if agg.fn in ("min", "max"):
            found[agg.name] = before[agg.column]
    return found


def join_columns(node: Join) -> list[tuple[str, str, str, Kind]]:
    """List a join's output: name, side (`l`, `r` or `both`), name on that side, type."""
    left = columns(node.left)
    keep_right = node.how not in ("leftsemi", "leftanti")
    right = columns(node.right) if keep_right else {}
    if not node.using:
        return [(name, "l", name, kind) for name, kind in left.items()] + [
            (node.prefix + name, "r", name, kind) for name, kind in right.items()
        ]
    side = {"right": "r", "full": "both"}.get(node.how, "l")
    return (
        [(key, side, key, left[key]) for key in node.keys]
        + [(name, "l", name, kind) for name, kind in left.items() if name not in node.keys]
        + [
            (node.prefix + name, "r", name, kind)
            for name, kind in right.items()
            if name not in node.keys
        ]
    )


def describe(node: Node) -> str:
    """Write a pipeline as the DataFrame code that it stands for."""
    match node:
        case Read(source, static):
            return f"{source}[static]" if static else source
        case Watermark(child, delay, column):
            return f"{child!r}.withWatermark({column}, {delay}s)"
        case Filter(child, condition, as_text):
            return f"{child!r}.filter({to_sql(condition)}{', as text' if as_text else ''})"
        case WithColumn(child, name, value):
            return f"{child!r}.withColumn({name}, {to_sql(value)})"
        case Select(child, named):
            return f"{child!r}.select({', '.join(_named(n, e) for n, e in named)})"
        case Rename(child, old, new):
            return f"{child!r}.withColumnRenamed({old}, {new})"
        case Drop(child, names):
            return f"{child!r}.drop({', '.join(names)})"
        case Explode(child, column, name, outer):
            return f"{child!r}.withColumn({name}, explode{'_outer' if outer else ''}({column}))"
        case WindowColumn(child, window, name):
            return f"{child!r}.withColumn({name}, {_describe_window(window)})"
        case Unpivot(child, ids, values, variable, value):
            return f"{child!r}.unpivot({list(ids)}, {list(values)}, {variable}, {value})"
        case Named(child, name):
            return f"{child!r}.named({name})"
        case Union(left, right, by_name, fills):
            by = "ByName" if by_name else ""
            return f"{left!r}.union{by}({right!r}{', allowMissingColumns' if fills else ''})"
        case Distinct(child):
            return f"{child!r}.distinct()"
        case DropDuplicates(child, subset, within):
            verb = "dropDuplicatesWithinWatermark" if within else "dropDuplicates"
            return f"{child!r}.{verb}({', '.join(subset)})"
        case _:
            return _describe_wide(node)


def _named(name: str, expr: Expr) -> str:
    return name if expr == col(name) else f"{to_sql(expr)} AS {name}"


def _describe_wide(node: Node) -> str:
    match node:
        case Aggregate(child, window, keys, aggs):
            by = ", ".join(([] if window is None else [_describe_window(window)]) + list(keys))
            made = ", ".join(f"{a.fn}({a.column}) AS {a.name}" for a in aggs)
            return f"{child!r}.{node.grouping}({by}).agg({made})"
        case Pivot(child, keys, column, values, agg):
            pivot = f"pivot({column}, {list(values)}).agg({agg.fn}({agg.column}))"
            return f"{child!r}.groupBy({', '.join(keys)}).{pivot}"
        case SetOperation(left, right, verb):
            return f"{left!r}.{verb}({'itself' if left == right else repr(right)})"
        case Join(left, right):
            other = "itself" if left == right else repr(right)
            condition = f"using {list(node.keys)}" if node.using else join_condition(node)
            return f"{left!r}.join({other}, {condition}, {node.how})"
        case OrderLimit(child, by, n):
            order = ", ".join(f"{name}{'' if up else ' desc'}" for name, up in by)
            return f"{child!r}.orderBy({order}).limit({n})"
        case _:
            msg = f"no such operator: {type(node).__name__}"
            raise TypeError(msg)


def _describe_window(window: Window) -> str:
    if window.session:
        return f"session_window({window.column}, {window.size_seconds}s)"
    slide = "" if window.slide_seconds is None else f", {window.slide_seconds}s"
    return f"window({window.column}, {window.size_seconds}s{slide})"


def join_condition(node: Join) -> str:
    """Write a join's condition as SQL over the aliases `l` and `r`."""
    equal = "<=>" if node.null_safe else "="
    parts = [f"l.{key} {equal} r.{key}" for key in node.keys]
    for op, seconds in ((">=", node.low_seconds), ("<=", node.high_seconds)):
        if seconds is not None:
            sign = "-" if seconds < 0 else "+"
            shift = f"INTERVAL {abs(seconds)} SECONDS"
            parts.append(f"r.{node.time} {op} l.{node.time} {sign} {shift}")
    return " AND ".join(parts)
