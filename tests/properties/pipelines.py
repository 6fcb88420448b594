"""Random small pipelines as data, and what is needed to run them.

A pipeline is a tree of frozen dataclasses (`Read`, `Filter`, `Join`, ...) inside a `Spec`. It can
be printed as the DataFrame code it stands for, written as JSON, applied by `build` to anything that
has DataFrame's verbs, and evaluated by `reference` without Spark. Nothing here knows how a result
is traced.

Start at `random_spec` and `random_data`: a seed gives a pipeline and its rows. `build` turns the
pipeline into frames, `write_data` puts the rows where Spark can read them, one file per
micro-batch. This file is long because the vocabulary, its printing, its building and its generator
belong together: a new operator touches all four.

A row is a dict. Timestamps are integers, microseconds since 1970 in UTC; arrays and windows are
tuples; `rid` is the row's number in its source.
"""

from __future__ import annotations

import dataclasses
import json
import os
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st
from pyspark.sql import functions as F

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import Column, DataFrame, SparkSession

Row: TypeAlias = dict[str, Any]
Tables: TypeAlias = dict[str, list[Row]]
Batches: TypeAlias = dict[str, list[list[Row]]]
Kind: TypeAlias = Literal["int", "long", "double", "string", "timestamp", "array", "window"]
How: TypeAlias = Literal["inner", "left", "right", "full", "leftsemi", "leftanti"]

SECOND = 1_000_000
"""Microseconds in a second: the unit of every timestamp here."""

BASE = 1_767_225_600 * SECOND
"""2026-01-01 00:00:00 UTC, where the random event times start."""

COLUMNS: dict[str, Kind] = {
    "rid": "long",
    "ts": "timestamp",
    "k": "string",
    "g": "int",
    "v": "int",
    "tags": "array",
}
"""The schema that every source has."""

DDL = "rid long, ts timestamp, k string, g int, v int, tags array<int>"

_ARROW = pa.schema(
    [
        ("rid", pa.int64()),
        ("ts", pa.timestamp("us", tz="UTC")),
        ("k", pa.string()),
        ("g", pa.int32()),
        ("v", pa.int32()),
        ("tags", pa.list_(pa.int32())),
    ]
)


# ---------------------------------------------------------------------------- expressions


@dataclass(frozen=True, repr=False)
class Expr:
    """A scalar expression: an operation and its arguments.

    Examples:
        >>> Expr("and", (compare(">", "v", 2), Expr("isnull", (col("k"),))))
        (v > 2) AND (k IS NULL)
    """

    op: str
    args: tuple[Any, ...]

    def __repr__(self) -> str:
        return to_sql(self)


def col(name: str) -> Expr:
    """Refer to a column by name."""
    return Expr("col", (name,))


def lit(value: int | str | None) -> Expr:
    """Stand for a constant."""
    return Expr("lit", (value,))


def compare(op: str, name: str, value: int | str) -> Expr:
    """Compare a column with a constant."""
    return Expr(op, (col(name), lit(value)))


def refs(expr: Expr) -> frozenset[str]:
    """Name the columns that an expression reads."""
    if expr.op == "col":
        return frozenset(expr.args)
    return frozenset().union(*(refs(arg) for arg in expr.args if isinstance(arg, Expr)))


def substitute(expr: Expr, definitions: Mapping[str, Expr]) -> Expr:
    """Replace column references by their definitions."""
    if expr.op == "col":
        return definitions.get(expr.args[0], expr)
    args = tuple(substitute(a, definitions) if isinstance(a, Expr) else a for a in expr.args)
    return Expr(expr.op, args)


def conjuncts(expr: Expr) -> tuple[Expr, ...]:
    """Split an expression at its outermost ANDs."""
    if expr.op != "and":
        return (expr,)
    return tuple(part for arg in expr.args for part in conjuncts(arg))


_INFIX = {"and": "AND", "or": "OR"} | {
    op: op for op in ("+", "-", "*", "%", "=", "<>", "<", "<=", ">", ">=", "<=>")
}
_POSTFIX = {"isnull": "IS NULL", "isnotnull": "IS NOT NULL"}


def _literal(value: object) -> str:
    if value is None:
        return "NULL"
    return f"'{value}'" if isinstance(value, str) else str(value)


def _operand(arg: Expr) -> str:
    text = to_sql(arg)
    return f"({text})" if arg.op in _INFIX or arg.op in _POSTFIX else text


def to_sql(expr: Expr) -> str:
    """Write an expression as Spark SQL."""
    op, args = expr.op, expr.args
    if op == "col":
        return str(args[0])
    if op == "lit":
        return _literal(args[0])
    if op in _INFIX:
        return f" {_INFIX[op]} ".join(_operand(arg) for arg in args)
    if op in _POSTFIX:
        return f"{_operand(args[0])} {_POSTFIX[op]}"
    if op in ("start", "end"):
        return f"{to_sql(args[0])}.{op}"
    if op == "not":
        return f"NOT ({to_sql(args[0])})"
    if op == "in":
        return f"{_operand(args[0])} IN ({', '.join(to_sql(arg) for arg in args[1:])})"
    return f"{op}({', '.join(to_sql(arg) for arg in args)})"


_COLUMN_OPS: dict[str, Callable[..., Column]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "%": lambda a, b: a % b,
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "<=>": lambda a, b: a.eqNullSafe(b),
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "not": lambda a: ~a,
    "isnull": lambda a: a.isNull(),
    "isnotnull": lambda a: a.isNotNull(),
    "in": lambda a, *options: a.isin(*options),
    "coalesce": F.coalesce,
    "if": lambda test, yes, no: F.when(test, yes).otherwise(no),
    "upper": F.upper,
    "concat": F.concat,
    "length": F.length,
    "size": F.size,
    "second": F.second,
    "window_time": F.window_time,
    "start": lambda a: a.getField("start"),
    "end": lambda a: a.getField("end"),
}


def to_column(expr: Expr) -> Column:
    """Write an expression with Spark's functions, columns by name."""
    if expr.op == "col":
        return F.col(expr.args[0])
    if expr.op == "lit":
        return F.lit(expr.args[0])
    return _COLUMN_OPS[expr.op](*(to_column(arg) for arg in expr.args))


def kind_of(expr: Expr, columns: Mapping[str, Kind]) -> Kind:
    """Tell the type of an expression over the given columns."""
    if expr.op == "col":
        return columns[expr.args[0]]
    if expr.op == "lit":
        return "string" if isinstance(expr.args[0], str) else "int"
    if expr.op in ("upper", "concat"):
        return "string"
    if expr.op in ("window_time", "start", "end"):
        return "timestamp"
    if expr.op in ("length", "size", "second"):
        return "int"
    kinds = {kind_of(arg, columns) for arg in expr.args[1 if expr.op == "if" else 0 :]}
    return "long" if "long" in kinds else next(iter(kinds))


# ---------------------------------------------------------------------------- operators


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


@dataclass(frozen=True, repr=False)
class Union(Node):
    """`union`, or `unionByName`."""

    left: Node
    right: Node
    by_name: bool = False


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


Narrow: TypeAlias = Filter | WithColumn | Select | Rename | Drop | Explode


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
        case Aggregate():
            return _aggregate_columns(node)
        case Join():
            return {name: kind for name, _, _, kind in join_columns(node)}
        case _:
            return columns(children(node)[0])


def _aggregate_columns(node: Aggregate) -> dict[str, Kind]:
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


# ---------------------------------------------------------------------------- printing


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
        case Union(left, right, by_name):
            return f"{left!r}.union{'ByName' if by_name else ''}({right!r})"
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
            return f"{child!r}.groupBy({by}).agg({made})"
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


def to_json(spec: Spec) -> str:
    """Write a pipeline as JSON."""
    return json.dumps(_to_plain(spec))


def from_json(text: str) -> Spec:
    """Read a pipeline from JSON."""
    spec: Spec = _from_plain(json.loads(text))
    return spec


def _to_plain(value: object) -> object:
    if dataclasses.is_dataclass(value):
        fields = {f.name: _to_plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
        return {"type": type(value).__name__, **fields}
    return [_to_plain(item) for item in value] if isinstance(value, tuple) else value


def _from_plain(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_from_plain(item) for item in value)
    if not isinstance(value, dict):
        return value
    made = {name: _from_plain(item) for name, item in value.items() if name != "type"}
    return globals()[value["type"]](**made)


# ---------------------------------------------------------------------------- building


def build(spec: Spec, frames: Mapping[str, Any]) -> Any:
    """Apply a pipeline to frames that have DataFrame's verbs.

    Equal parts of the tree become one frame: a watermark that two branches share is one watermark
    for Spark, and its progress is the faster branch's.

    Args:
        spec: The pipeline.
        frames: A frame for each source, streaming where the source comes in micro-batches.

    Returns:
        What the last verb returned.
    """
    made: dict[Node, Any] = {}

    def make(node: Node) -> Any:
        if node not in made:
            inputs = [make(child) for child in children(node)]
            made[node] = frames[node.source] if isinstance(node, Read) else _apply(node, *inputs)
        return made[node]

    return make(spec.root)


def _apply(node: Node, frame: Any, other: Any = None) -> Any:
    match node:
        case Watermark(_, delay, column):
            return frame.withWatermark(column, f"{delay} seconds")
        case Filter(_, condition, as_text):
            return frame.filter(to_sql(condition) if as_text else to_column(condition))
        case WithColumn(_, name, value):
            return frame.withColumn(name, to_column(value))
        case Select(_, named):
            return frame.select(*(to_column(value).alias(name) for name, value in named))
        case Rename(_, old, new):
            return frame.withColumnRenamed(old, new)
        case Drop(_, names):
            return frame.drop(*names)
        case Explode(_, column, name, outer):
            explode = F.explode_outer if outer else F.explode
            return frame.withColumn(name, explode(F.col(column)))
        case Union(_, _, by_name):
            return frame.unionByName(other) if by_name else frame.union(other)
        case Distinct():
            return frame.distinct()
        case DropDuplicates(_, subset, within):
            verb = frame.dropDuplicatesWithinWatermark if within else frame.dropDuplicates
            return verb(list(subset))
        case Aggregate():
            return _apply_aggregate(node, frame)
        case Join():
            return _apply_join(node, frame, other)
        case OrderLimit(_, by, n):
            order = (F.col(name).asc() if up else F.col(name).desc() for name, up in by)
            return frame.orderBy(*order).limit(n)
        case _:
            msg = f"no such operator: {type(node).__name__}"
            raise TypeError(msg)


_AGGS: dict[str, Callable[[str], Column]] = {
    "count_all": lambda _: F.count("*"),
    "count": F.count,
    "sum": F.sum,
    "min": F.min,
    "max": F.max,
    "avg": F.avg,
    "rids": lambda name: F.sort_array(F.collect_list(name)),
}


def _apply_aggregate(node: Aggregate, frame: Any) -> Any:
    by: list[Any] = list(node.keys)
    if node.window is not None:
        size = f"{node.window.size_seconds} seconds"
        slide = node.window.slide_seconds
        if node.window.session:
            by.insert(0, F.session_window(node.window.column, size))
        elif slide is None:
            by.insert(0, F.window(node.window.column, size))
        else:
            by.insert(0, F.window(node.window.column, size, f"{slide} seconds"))
    return frame.groupBy(*by).agg(*(_AGGS[a.fn](a.column).alias(a.name) for a in node.aggs))


def _apply_join(node: Join, left: Any, right: Any) -> Any:
    if node.using:
        names = columns(node.right)
        prefixed = [F.col(n).alias(n if n in node.keys else node.prefix + n) for n in names]
        if node.how in ("leftsemi", "leftanti"):
            prefixed = [F.col(key) for key in node.keys]
        return left.join(right.select(*prefixed), list(node.keys), node.how)
    joined = left.alias("l").join(right.alias("r"), F.expr(join_condition(node)), node.how)
    picked = (F.col(f"{side}.{name}").alias(new) for new, side, name, _ in join_columns(node))
    return joined.select(*picked)


# ---------------------------------------------------------------------------- files


def write_files(folder: Path, batches: Sequence[Sequence[Row]]) -> Path:
    """Write one Parquet file per micro-batch, with rising modification times.

    Spark's file source takes files in the order of their modification times, so with one
    file per trigger the micro-batches are exactly these.
    """
    folder.mkdir(parents=True)
    for number, rows in enumerate(batches):
        path = folder / f"{number:05d}.parquet"
        plain = [{**row, "tags": _as_list(row["tags"])} for row in rows]
        pq.write_table(pa.Table.from_pylist(plain, schema=_ARROW), path)
        when = 1_700_000_000 + 10 * number
        os.utime(path, (when, when))
    return folder


def _as_list(tags: Iterable[int] | None) -> list[int] | None:
    return None if tags is None else list(tags)


def write_data(folder: Path, spec: Spec, data: Tables | Batches) -> dict[str, Path]:
    """Write every source of a pipeline; tables become one file, streams one file per batch."""
    paths = {}
    for name, rows in data.items():
        streamed = spec.streaming and name not in spec.statics
        paths[name] = write_files(folder / name, rows if streamed else [rows])  # type: ignore[list-item,arg-type]
    return paths


def read_frames(spark: SparkSession, spec: Spec, paths: Mapping[str, Path]) -> dict[str, DataFrame]:
    """Read what `write_data` wrote: a frame for each source, one file per trigger."""
    streamed = spec.sources if spec.streaming else ()
    stream = spark.readStream.schema(DDL).option("maxFilesPerTrigger", 1)
    table = spark.read.schema(DDL)
    return {
        name: stream.parquet(str(path)) if name in streamed else table.parquet(str(path))
        for name, path in paths.items()
    }


# ---------------------------------------------------------------------------- what is left open


def settled(node: Node) -> frozenset[str] | None:
    """Tell which columns have values that no free choice of Spark's can change.

    `dropDuplicates` on some columns keeps any one of the equal rows, so the other columns are not
    settled. `None`: not even the number of rows is.
    """
    match node:
        case DropDuplicates(child, subset):
            return _narrowed(settled(child), subset)
        case Filter(child, condition):
            before = settled(child)
            return before if before is not None and refs(condition) <= before else None
        case WithColumn(child, name, value):
            before = settled(child)
            if before is None:
                return None
            return before | {name} if refs(value) <= before else before - {name}
        case Select(child, named):
            before = settled(child)
            kept = (name for name, value in named if before is not None and refs(value) <= before)
            return None if before is None else frozenset(kept)
        case Explode(child, column, name):
            before = settled(child)
            return before | {name} if before is not None and column in before else None
        case Rename(child, old, new):
            before = settled(child)
            return None if before is None else frozenset(new if n == old else n for n in before)
        case Drop(child, names):
            before = settled(child)
            return None if before is None else before - set(names)
        case _:
            inputs = children(node)
            open_input = any(not is_settled(child) for child in inputs)
            if open_input and len(inputs) == 1 and isinstance(node, Watermark):
                return settled(inputs[0])
            return None if open_input else frozenset(columns(node))


def _narrowed(before: frozenset[str] | None, subset: Iterable[str]) -> frozenset[str] | None:
    return frozenset(subset) if before is not None and before >= set(subset) else None


def is_settled(node: Node) -> bool:
    """Tell whether every value of a result is certain."""
    return settled(node) == frozenset(columns(node))


def identifying(node: Node) -> tuple[str, ...] | None:
    """Find columns that tell any two rows of a result apart; `None` where there may be none."""
    match node:
        case Read():
            return ("rid",)
        case WithColumn(child, name, _):
            return _unless(identifying(child), lambda found: name in found)
        case Select(child, named):
            renamed = {value.args[0]: name for name, value in named if value.op == "col"}
            return _renamed(identifying(child), renamed)
        case Rename(child, old, new):
            return _renamed(identifying(child), {n: n for n in columns(child)} | {old: new})
        case Drop(child, names):
            return _unless(identifying(child), lambda found: bool(set(names) & set(found)))
        case Distinct() | Aggregate():
            keys = (
                _aggregate_columns(dataclasses.replace(node, aggs=()))
                if (isinstance(node, Aggregate))
                else columns(node)
            )
            return None if "array" in keys.values() else tuple(keys)
        case DropDuplicates(_, subset):
            return subset
        case Filter(child) | Watermark(child) | OrderLimit(child):
            return identifying(child)
        case Join():
            return _identifying_join(node)
        case _:
            return None


def _unless(
    found: tuple[str, ...] | None, spoiled: Callable[[tuple[str, ...]], bool]
) -> tuple[str, ...] | None:
    return None if found is None or spoiled(found) else found


def _renamed(found: tuple[str, ...] | None, names: Mapping[str, str]) -> tuple[str, ...] | None:
    if found is None or not set(found) <= set(names):
        return None
    return tuple(names[name] for name in found)


def _identifying_join(node: Join) -> tuple[str, ...] | None:
    left = identifying(node.left)
    if node.how in ("leftsemi", "leftanti"):
        return left
    right = identifying(node.right)
    if left is None or right is None or node.using:
        return None
    return left + tuple(node.prefix + name for name in right)


# ---------------------------------------------------------------------------- random pipelines


class _Maker:
    """Draws pipelines from a random number generator."""

    def __init__(self, rng: random.Random, *, streaming: bool) -> None:
        self.rng = rng
        self.streaming = streaming

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def pick(self, options: Iterable[Any]) -> Any:
        return self.rng.choice(list(options))

    def some(self, options: Iterable[str], least: int = 1) -> tuple[str, ...]:
        found = list(options)
        kept = set(self.rng.sample(found, self.rng.randint(min(least, len(found)), len(found))))
        return tuple(name for name in found if name in kept)

    # expressions

    def test(self, node: Node, *, names: Iterable[str] | None = None, plain: bool = False) -> Expr:
        """Draw a predicate. `plain`: over one column, and none that only null passes."""
        kinds = {n: k for n, k in columns(node).items() if names is None or n in set(names)}
        ints = [n for n, k in kinds.items() if k in ("int", "long") and not n.endswith("rid")]
        texts = [n for n, k in kinds.items() if k == "string"]
        options: list[Callable[[], Expr]] = []
        if ints:
            options += [self._compare(ints), self._compare(ints), self._parity(ints)]
            options += [lambda: Expr("isnotnull", (col(self.pick(ints)),))]
        if texts:
            options += [self._text_test(texts), self._text_test(texts)]
        if kinds.get("ts") == "timestamp":
            options += [lambda: Expr("<", (Expr("second", (col("ts"),)), lit(self.pick((20, 50)))))]
        if ints and not plain:
            options += [self._mixed(ints, texts), self._mixed(ints, texts)]
            options += [lambda: Expr("isnull", (col(self.pick(ints)),))]
        if not options:
            return compare(">=", "rid", 0) if "rid" in kinds else Expr("=", (lit(1), lit(1)))
        return self.pick(options)()  # type: ignore[no-any-return]

    def _compare(self, ints: list[str]) -> Callable[[], Expr]:
        op, value = self.pick((">", "<=", "<>", ">=")), self.rng.randint(0, 3)
        return lambda: compare(op, self.pick(ints), value)

    def _parity(self, ints: list[str]) -> Callable[[], Expr]:
        rest = self.rng.randint(0, 1)
        return lambda: Expr("=", (Expr("%", (col(self.pick(ints)), lit(2))), lit(rest)))

    def _text_test(self, texts: list[str]) -> Callable[[], Expr]:
        name = self.pick(texts)
        return self.pick(  # type: ignore[no-any-return]
            (
                lambda: compare("<>", name, self.pick("abc")),
                lambda: Expr("in", (col(name), lit("a"), lit("b"), lit("z"))),
                lambda: Expr("=", (Expr("coalesce", (col(name), lit("a"))), lit("a"))),
                lambda: Expr("isnotnull", (col(name),)),
            )
        )

    def _mixed(self, ints: list[str], texts: list[str]) -> Callable[[], Expr]:
        one = compare(self.pick((">", "<")), self.pick(ints), self.rng.randint(0, 4))
        name = self.pick(texts or ints)
        total = Expr("+", (Expr("coalesce", (col(self.pick(ints)), lit(0))), col(self.pick(ints))))
        return self.pick(  # type: ignore[no-any-return]
            (
                lambda: Expr("or", (one, Expr("isnull", (col(name),)))),
                lambda: Expr("and", (one, Expr("isnotnull", (col(name),)))),
                lambda: Expr("not", (one,)),
                lambda: Expr(">", (total, lit(self.rng.randint(0, 5)))),
                lambda: Expr("<=>", (col(name), col(self.pick(texts or ints)))),
            )
        )

    def value(self, node: Node, kind: Kind) -> Expr:
        """Draw an expression of a type; never a constant, which Spark would fold away."""
        kinds = columns(node)
        ints = [n for n, k in kinds.items() if k == kind and n != "rid"]
        texts = [n for n, k in kinds.items() if k == "string"]
        if kind == "string":
            name = col(self.pick(texts))
            return self.pick(  # type: ignore[no-any-return]
                (
                    Expr("upper", (name,)),
                    Expr("concat", (name, lit("!"))),
                    Expr("coalesce", (name, lit("none"))),
                )
            )
        one, two = col(self.pick(ints)), col(self.pick(ints))
        options = [
            Expr("+", (one, lit(self.rng.randint(1, 3)))),
            Expr("-", (Expr("*", (one, lit(2))), two)),
            Expr("coalesce", (one, two)),
            Expr("if", (Expr(">", (one, lit(2))), one, two)),
            Expr("%", (one, lit(3))),
        ]
        if kind == "int" and texts:
            options.append(Expr("length", (col(self.pick(texts)),)))
        return self.pick(options)  # type: ignore[no-any-return]

    # operators that look at one row

    def narrow(self, node: Node, keep: Iterable[str] = (), *, plain: bool = False) -> Node:
        """Add an operator that looks at one row and leaves the named columns as they are."""
        kept = set(keep)
        kinds = columns(node)
        loose = [name for name in kinds if name not in kept]
        options: list[Callable[[], Node]] = [
            lambda: Filter(node, self.test(node, plain=plain), as_text=self.chance(0.5))
        ] * 3
        if any(kind == "int" for name, kind in kinds.items()):
            options += [lambda: self._map(node, kept)] * 2
        if "string" in kinds.values():
            options += [lambda: self._map(node, kept, "string")]
        if kinds.get("tags") == "array" and "tag" not in kinds:
            options += [lambda: Explode(node, "tags", "tag", outer=self.chance(0.3))]
        if len(loose) > 1:
            options += [lambda: Drop(node, self.some(loose)[:2]), lambda: self._select(node, kept)]
            options += [lambda: self._rename(node, loose)]
        return self.pick(options)()  # type: ignore[no-any-return]

    def narrows(self, node: Node, most: int, keep: Iterable[str] = (), **how: bool) -> Node:
        for _ in range(self.rng.randint(0, most)):
            node = self.narrow(node, keep, **how)
        return node

    def _map(self, node: Node, kept: set[str], kind: Kind = "int") -> Node:
        kinds = columns(node)
        old = [n for n, k in kinds.items() if k == kind and n not in kept]
        fresh = next(f"c{i}" for i in range(1, 9) if f"c{i}" not in kinds)
        name = self.pick(old) if old and self.chance(0.5) else fresh
        return WithColumn(node, name, self.value(node, kind))

    def _select(self, node: Node, kept: set[str]) -> Node:
        kinds = columns(node)
        names = [n for n in kinds if n in kept or self.chance(0.6)] or list(kinds)
        named = [(name, col(name)) for name in names]
        if "window" in names and self.chance(0.5):
            named.append(("began", Expr("start", (col("window"),))))
        return Select(node, tuple(named))

    def _rename(self, node: Node, loose: list[str]) -> Node:
        old = self.pick(loose)
        return Rename(node, old, f"{old}_new")

    # aggregates

    def window(self, column: str, *, sessions: bool = True) -> Window:
        size = self.pick((5, 10, 12, 20))
        kind = self.pick(
            ("tumbling", "sliding", "session") if sessions else ("tumbling", "sliding")
        )
        if kind == "session":
            return Window(column, self.pick((3, 5, 8)), session=True)
        slide = (
            self.pick([s for s in (4, 5, 6, 10) if s < size])
            if kind == "sliding" and (size > 5)
            else None
        )
        return Window(column, size, slide)

    def aggs(self, node: Node, exclude: Iterable[str] = ()) -> tuple[Agg, ...]:
        kinds = columns(node)
        numbers = [n for n, k in kinds.items() if k in ("int", "long") and n not in set(exclude)]
        made = [Agg("count_all", "*", "n")] if self.chance(0.8) or not numbers else []
        for name in self.rng.sample(numbers, min(len(numbers), self.rng.randint(0, 2))):
            fn = self.pick(("count", "sum", "min", "max", "avg"))
            made.append(Agg(fn, name, f"{fn}_{name}"))
        if "rid" in kinds and self.chance(0.4):
            made.append(Agg("rids", "rid", "rids"))
        return tuple(made) or (Agg("count_all", "*", "n"),)

    def aggregate(self, node: Node, window: Window | None, keys: tuple[str, ...]) -> Aggregate:
        return Aggregate(node, window, keys, self.aggs(node, keys))

    # batch pipelines

    def batch(self) -> Node:
        node: Node = Read("a")
        for _ in range(self.rng.randint(1, 4)):
            node = self.batch_step(node)
        return node

    def batch_step(self, node: Node) -> Node:
        if not is_settled(node):
            return self.narrow(node)
        steps: list[tuple[float, Callable[[Node], Node]]] = [
            (4, self.narrow),
            (2, self._batch_union),
            (2, self._batch_dedup),
            (3, self._batch_aggregate),
            (4, self._batch_join),
        ]
        if identifying(node):
            steps.append((1.5, self._order_limit))
        [step] = self.rng.choices([s for _, s in steps], [weight for weight, _ in steps])
        return step(node)

    def _batch_branch(self) -> Node:
        """Draw a second input: a source with a few operators on it that keep its columns."""
        node: Node = Read(self.pick("ab"))
        for _ in range(self.rng.randint(0, 2)):
            node = self._same_columns(node)
        return node

    def _same_columns(self, node: Node) -> Node:
        ints = [n for n, k in columns(node).items() if k == "int"]
        if ints and self.chance(0.4):
            name = self.pick(ints)
            return WithColumn(node, name, self.value(node, "int"))
        return Filter(node, self.test(node), as_text=self.chance(0.5))

    def _batch_union(self, node: Node) -> Node:
        base = columns(node) == COLUMNS
        other = self._batch_branch() if base else self._same_columns(node)
        return Union(node, other, by_name=self.chance(0.4))

    def _batch_dedup(self, node: Node) -> Node:
        kinds = columns(node)
        if self.chance(0.4):
            few = self.some(name for name in kinds if name not in ("rid", "r_rid")) or tuple(kinds)
            return Distinct(Select(node, tuple((n, col(n)) for n in few[:3])))
        subset = self.some([n for n, k in kinds.items() if k in ("string", "int")] or list(kinds))
        kept = DropDuplicates(node, subset, within_watermark=False)
        return Select(kept, tuple((n, col(n)) for n in subset)) if self.chance(0.5) else kept

    def _batch_aggregate(self, node: Node) -> Node:
        kinds = columns(node)
        times = [n for n, k in kinds.items() if k == "timestamp"]
        keys = [n for n, k in kinds.items() if k in ("string", "int")]
        window = self.window(self.pick(times)) if times and self.chance(0.5) else None
        if window is None and "window" in kinds and self.chance(0.5):
            window = Window("window", self.pick((20, 30)))
        chosen = self.some(keys, 0)[:2] if keys else ()
        if window is not None and window.session and not chosen:
            window = Window(window.column, 10)
        return self.aggregate(node, window, chosen)

    def _batch_join(self, node: Node) -> Node:
        other = node if self.chance(0.25) else self._batch_branch()
        how = self.pick(("inner", "left", "right", "full", "leftsemi", "leftanti"))
        left, right = columns(node), columns(other)
        shared = [
            n for n, k in left.items() if right.get(n) == k and k in ("string", "int", "window")
        ]
        if not shared:
            return self.narrow(node)
        prefix = next(f"r{i}_" for i in ("", 2, 3, 4, 5) if not _clash(left, right, f"r{i}_"))
        keys = self.some(shared)[:2]
        if other != node and self.chance(0.4):
            return Join(node, other, how, keys, using=True, prefix=prefix)
        return Join(node, other, how, keys, null_safe=self.chance(0.2), prefix=prefix)

    def _order_limit(self, node: Node) -> Node:
        last = identifying(node) or ()
        first = self.pick([n for n, k in columns(node).items() if k != "array"] or last)
        by = [(first, self.chance(0.5))] + [(n, self.chance(0.7)) for n in last if n != first]
        return OrderLimit(node, tuple(by), self.rng.randint(1, 6))

    # streaming pipelines

    def stream(self) -> Node:
        shapes: list[tuple[float, Callable[[], Node]]] = [
            (2, self._stateless),
            (4, self._windows),
            (2, self._windows_of_windows),
            (3, self._dedup),
            (1.5, self._dedup_then_windows),
            (2.5, self._union_then_state),
            (5, self._interval_join),
            (1.5, self._window_join),
            (1.5, self._windows_join_stream),
            (2.5, self._static_join),
        ]
        [shape] = self.rng.choices([s for _, s in shapes], [weight for weight, _ in shapes])
        return shape()

    def marked(self, source: str, keep: Iterable[str] = (), *, plain: bool = False) -> Node:
        """Draw a source with a watermark and a few operators before and after it."""
        kept = {"ts", *keep}
        node: Node = Read(source)
        if self.chance(0.25):
            node = Filter(node, self.test(node, plain=plain))
        node = Watermark(node, self.pick((0, 2, 5, 10)))
        return self.narrows(node, 2, kept, plain=plain)

    def _keys(self, node: Node, least: int = 0) -> tuple[str, ...]:
        found = [n for n, k in columns(node).items() if k in ("string", "int")]
        return self.some(found, least)[:2]

    def _stateless(self) -> Node:
        node = self.narrows(Read("a"), 2) if self.chance(0.5) else self.marked("a")
        if columns(node) == COLUMNS:
            other = self._same_columns(Read(self.pick("ab")))
            node = Union(node, other, by_name=self.chance(0.4))
        return self.narrow(node)

    def _windowed(self, node: Node, *, sessions: bool = True) -> Aggregate:
        keys = self._keys(node)
        window = self.window("ts", sessions=sessions and bool(keys))
        return self.aggregate(node, window, keys)

    def _windows(self) -> Node:
        node = self.marked("a")
        if self.chance(0.15):
            return self.aggregate(node, None, ("ts", *self._keys(node)))
        return self.narrows(self._windowed(node), 2)

    def _windows_of_windows(self) -> Node:
        first = self._windowed(self.marked("a"))
        size = self.pick((20, 24, 30))
        assert first.window is not None
        name = first.window.name
        if self.chance(0.4) and not first.window.session:
            node: Node = Filter(first, self.test(first)) if self.chance(0.5) else first
            return self.aggregate(node, Window(name, size), self._keys(node))
        rest = tuple((n, col(n)) for n in columns(first) if n != name)
        node = Select(first, (("ts", Expr("window_time", (col(name),))), *rest))
        node = self.narrows(node, 1, ("ts",))
        return self.narrows(self.aggregate(node, Window("ts", size), self._keys(node)), 1)

    def _deduplicated(self, node: Node) -> Node:
        kinds = columns(node)
        keyed = [n for n, k in kinds.items() if k in ("string", "int")] or list(kinds)
        match self.pick(("distinct", "keys", "keys", "timed", "within")):
            case "distinct":
                few = ("ts", *[n for n in self.some(keyed)[:2] if n != "ts"])
                return Distinct(Select(node, tuple((n, col(n)) for n in few)))
            case "timed":
                return DropDuplicates(node, ("ts", *[n for n in self.some(keyed)[:2] if n != "ts"]))
            case "within" if not any(isinstance(n, Union) for n in walk(node)):
                return DropDuplicates(node, self.some(keyed)[:2], within_watermark=True)
            case _:
                return DropDuplicates(node, self.some(keyed)[:2])

    def _dedup(self) -> Node:
        if self.chance(0.2):
            node = self.narrows(Read("a"), 2)
            return self.narrows(
                DropDuplicates(node, self._keys(node, 1) or tuple(columns(node))), 1
            )
        return self.narrows(self._deduplicated(self.marked("a")), 2)

    def _dedup_then_windows(self) -> Node:
        node = self.marked("a", ("k",))
        subset = tuple(dict.fromkeys(("ts", "k", *self._keys(node))))
        named = tuple((n, col(n)) for n in subset)
        unique = self.pick(
            (Select(DropDuplicates(node, subset), named), Distinct(Select(node, named)))
        )
        return self.narrows(self._windowed(unique), 1)

    def _union_then_state(self) -> Node:
        node: Node
        match self.pick(("branches", "sources", "late mark", "one mark")):
            case "branches":
                shared = Watermark(Read("a"), self.pick((0, 3, 8)))
                node = Union(self._same_columns(shared), self._same_columns(shared))
            case "sources":
                left = Watermark(Read("a"), self.pick((0, 3, 8)))
                right = Watermark(Read("b"), self.pick((0, 3, 8)))
                node = Union(self._same_columns(left), right, by_name=self.chance(0.4))
            case "late mark":
                node = Watermark(Union(Read("a"), self._same_columns(Read("b"))), 5)
            case _:
                node = Union(Watermark(Read("a"), 5), Read("b"))
        node = self.narrows(node, 1, ("ts",))
        state = self._deduplicated(node) if self.chance(0.35) else self._windowed(node)
        return self.narrows(state, 1)

    def _interval_join(self) -> Node:
        keys = self.pick((("k",), ("k",), ("g",), ("k", "g")))
        how = self.pick(("inner", "left", "right", "full", "leftsemi"))
        keep = ("rid", "v", *keys)
        left = self.marked("a", keep, plain=True)
        right = left if self.chance(0.2) else self.marked(self.pick("bba"), keep, plain=True)
        low, high = self.pick(((-5, 3), (0, 10), (-8, 0), (2, 6), (-3, -1)))
        if how == "inner" and self.chance(0.15):
            low = None
        node: Node = Join(left, right, how, keys, low, high)
        if self.chance(0.4):
            node = Filter(node, self.test(node, plain=True), as_text=self.chance(0.5))
        if self.chance(0.35):
            return self._windowed(self._one_time(node), sessions=False)
        return node

    def _one_time(self, node: Node) -> Node:
        """Leave a join one event time: Spark refuses two in the next stateful operator."""
        return Drop(node, ("r_ts",)) if "r_ts" in columns(node) else node

    def _window_join(self) -> Node:
        window = self.window("ts", sessions=False)
        sides = []
        for source in ("a", self.pick("ab")):
            node = self.marked(source, ("k", "v"), plain=True)
            sides.append(self.aggregate(node, window, ("k",)))
        # A semi join on top of aggregates is left out: Spark pushes it below the left aggregate,
        # where it runs row by row against state that is gone, and counts come out too small.
        how = self.pick(("inner", "left", "right", "full"))
        using = self.chance(0.4) and sides[0] != sides[1]
        return Join(sides[0], sides[1], how, ("window", "k"), using=using)

    def _windows_join_stream(self) -> Node:
        first = self.aggregate(
            self.marked("a", ("k",), plain=True), self.window("ts", sessions=False), ("k",)
        )
        rest = tuple((n, col(n)) for n in columns(first) if n != "window")
        left = Select(first, (("ts", Expr("window_time", (col("window"),))), *rest))
        right = self.marked("b", ("k", "rid"), plain=True)
        how = self.pick(("inner", "left", "right"))
        return Join(left, right, how, ("k",), *self.pick(((-5, 3), (-12, 0), (0, 6))))

    def _static_join(self) -> Node:
        keys = self.pick((("k",), ("g",), ("k", "g")))
        node = self.marked("a", ("v", *keys), plain=True)
        table: Node = Read("s", static=True)
        if self.chance(0.4):
            table = Filter(table, self.test(table, plain=True))
        using = self.chance(0.4)
        if self.chance(0.25):
            how = self.pick(("inner", "right"))
            joined: Node = Join(table, node, how, keys, using=using)
            return joined if self.chance(0.6) else self.narrow(joined, plain=True)
        joined = Join(
            node, table, self.pick(("inner", "left", "leftsemi", "leftanti")), keys, using=using
        )
        if self.chance(0.3):
            joined = Filter(joined, self.test(joined, plain=True))
        return self._windowed(joined) if self.chance(0.5) else joined


def _clash(left: Iterable[str], right: Iterable[str], prefix: str) -> bool:
    return bool({prefix + name for name in right} & set(left))


def draw_spec(rng: random.Random, *, streaming: bool) -> Spec:
    """Draw a pipeline from a random number generator."""
    maker = _Maker(rng, streaming=streaming)
    return Spec(maker.stream() if streaming else maker.batch(), streaming)


def random_spec(seed: int, *, streaming: bool) -> Spec:
    """Draw the pipeline of a seed; the same one on every call and every machine."""
    return draw_spec(random.Random(f"spec {seed} {streaming}"), streaming=streaming)


# ---------------------------------------------------------------------------- random rows


def _random_row(rng: random.Random, rid: int, seconds: float) -> Row:
    ts = None if rng.random() < 0.05 else BASE + round(seconds * SECOND)
    return {
        "rid": rid,
        "ts": ts,
        "k": rng.choice(["a", "a", "b", "b", "c", None]),
        "g": rng.randint(0, 2),
        "v": None if rng.random() < 0.15 else rng.randint(0, 5),
        "tags": None
        if rng.random() < 0.1
        else tuple(rng.randint(0, 3) for _ in range(rng.randint(0, 3))),
    }


def _seconds(rng: random.Random, around: int) -> float:
    """Draw an event time: mostly whole seconds, so that window bounds are hit often."""
    whole = max(0, around + rng.randint(-10, 10) + rng.randint(-10, 10))
    return whole + rng.choice((0, 0, 0, 0, 0.25, 0.0004, -0.000001)) if whole else 0.0


def _random_rows(rng: random.Random, first: int, count: int, around: int) -> list[Row]:
    """Draw rows; now and then one repeats an earlier one but for its number."""
    rows: list[Row] = []
    for rid in range(first, first + count):
        fresh = _random_row(rng, rid, _seconds(rng, around))
        rows.append({**rng.choice(rows), "rid": rid} if rows and rng.random() < 0.15 else fresh)
    return rows


def _stream_of(rng: random.Random) -> list[list[Row]]:
    batches: list[list[Row]] = []
    count = 0
    for number in range(rng.randint(2, 3)):
        rows = _random_rows(rng, count, rng.randint(2, 8), 6 + 14 * number)
        count += len(rows)
        batches.append(rows)
    batches.append(_closing(rng, count))
    return batches


def _closing(rng: random.Random, count: int) -> list[Row]:
    """Make the last file: rows far ahead that most filters let through."""
    ahead = 1000 if rng.random() < 0.8 else rng.randint(50, 90)
    return [
        {
            "rid": count + i,
            "ts": BASE + (ahead + i) * SECOND,
            "k": "ab"[i % 2],
            "g": i % 3,
            "v": (5, 3, 2)[i],
            "tags": (1, 3),
        }
        for i in range(3)
    ]


def draw_data(rng: random.Random, spec: Spec) -> Tables | Batches:
    """Draw rows for a pipeline: tables for batch, lists of micro-batches for streams."""
    data: dict[str, Any] = {}
    for name in (*spec.sources, *spec.statics):
        if spec.streaming and name in spec.sources:
            data[name] = _stream_of(rng)
        else:
            size = rng.randint(0, 4) if name in spec.statics else rng.randint(1, 12)
            data[name] = _random_rows(rng, 0, size, 20)
    return data


def random_data(seed: int, spec: Spec) -> Tables | Batches:
    """Draw the rows of a seed for a pipeline; the same ones on every call."""
    return draw_data(random.Random(f"data {seed}"), spec)


@st.composite
def specs(draw: st.DrawFn, *, streaming: bool) -> Spec:
    """Let hypothesis draw pipelines, and shrink those that fail."""
    return draw_spec(draw(st.randoms(use_true_random=False)), streaming=streaming)


@st.composite
def specs_with_data(draw: st.DrawFn, *, streaming: bool) -> tuple[Spec, Tables | Batches]:
    """Let hypothesis draw pipelines together with rows for them."""
    spec = draw(specs(streaming=streaming))
    return spec, draw_data(draw(st.randoms(use_true_random=False)), spec)
