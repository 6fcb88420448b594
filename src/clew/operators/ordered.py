"""Windows over rows in order: by number, by value, with each row, and joins of such windows.

Spark lacks them, so a machine (`clew.operators.machines`) runs in Spark's own stateful operator, or
over the groups of a table. Content and annotation of a row travel through it as text, and what is
made of several rows brings the list of their texts back, so any capture can follow.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from pyspark.sql import functions as F
from pyspark.sql import types as T

from clew.exceptions import ColumnError, GraphError
from clew.operators.admit import admitted
from clew.operators.machines import (
    BoundedSort,
    ClockWindow,
    Machine,
    TimeWindow,
    WindowJoin,
)
from clew.operators.process import (
    AT,
    KEY,
    LANE,
    LANES,
    MICROS,
    NOTE,
    NOTES,
    ROW,
    ROWS,
    TIMES,
    VALUE,
    given_value,
    over_stream,
    over_table,
)
from clew.plan.columns import (
    JSON,
    WATERMARK,
    named,
    quote,
    refuse_reserved,
    sole,
    user_columns,
)
from clew.plan.equal import text_of
from clew.plan.facts import Facts, For, Keeps, Rows, WithoutEnd, stated
from clew.plan.made import Made
from clew.plan.node import Annotated, Node

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import Column, DataFrame

    from clew.model import Exactness
    from clew.plan.algebra import Annotation, Capture, Move

Pairs = Literal["new", "all"]

_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_TIME = "clew_time"
_MEMBERS = "_clew_members"
_PAIRS = "_clew_pairs"
_MICROS = "_clew_micros"


@dataclass(frozen=True, slots=True)
class Lane:
    """How the rows of one input are put in order.

    Attributes:
        keys: Rows are in order among those that are equal in these columns.
        time: The event time.
    """

    keys: tuple[str, ...]
    time: str


@dataclass(frozen=True, slots=True)
class Ordered:
    """Run a machine over rows in order.

    Attributes:
        machine: What is done with them.
        lanes: How each input is put in order.
        name: What the user calls it.
        into: The column that holds what was made: the rows of a window, the pairs of a join, or the
            moment at which a sorted row came out.
        value: The column that a value window or a sort looks at.
        on: Which rows of two inputs belong together.
        pairs: All pairs there are at a moment, or those with a row that came at it.
    """

    machine: Machine
    lanes: tuple[Lane, ...]
    name: str
    into: str
    value: str | None = None
    on: Callable[[Column, Column], Column] | None = None
    pairs: Pairs = "new"
    exactness: ClassVar[Exactness] = "exact"

    @property
    def kind(self) -> str:
        return self.name

    @property
    def label(self) -> str:
        by = ", ".join(self.lanes[0].keys)
        return f"{self.machine}" + (f" by {by}" if by else "")

    @property
    def size_us(self) -> int | None:
        """How much older than the moment of a result its rows may be; None if nothing says."""
        if isinstance(self.machine, (TimeWindow, ClockWindow)):
            return self.machine.size
        if isinstance(self.machine, WindowJoin):
            left, right = self.machine.left.time, self.machine.right.time
            return None if left is None or right is None else max(left, right)
        return None

    @property
    def moment(self) -> str:
        """The column of a result that says which moment it is of."""
        return self.into if isinstance(self.machine, BoundedSort) else self.lanes[0].time

    @property
    def facts(self) -> Facts:
        size = self.size_us
        keeps: Keeps = WithoutEnd(f"`{self.name}` keeps rows until enough others have come")
        if size is not None:
            keeps = For(size, self.moment)
        # Which rows are in a window without a size depends on all that came before.
        open_ended = size is None
        return stated(
            Rows.GATHERED,
            keeps,
            closes=True,
            rests_on_others=open_ended,
            rests_on_past=open_ended,
        )

    def made_of(self, node: Node, column: str) -> tuple[Made, ...]:
        if column != self.moment:
            return ()
        return tuple(Made(side, lane.time) for side, lane in enumerate(self.lanes))

    def annotate(self, inputs: Sequence[Annotated], capture: Capture) -> Annotated:
        schemas = [_users(each.df) for each in inputs]
        taken = [
            admitted(frame, lane.time, capture)
            for frame, lane in zip(inputs, self.lanes, strict=True)
        ]
        given, annotation = self._given(taken, capture)
        run = over_stream if given.isStreaming else over_table
        made = run(given, self.machine)
        emitted = capture.emitted(AT)
        made = made if emitted is None else made.filter(emitted)
        rows = self._paired(made, schemas) if self.on is not None else _read(made, schemas[0])
        move = capture.assemble(annotation, rows, NOTES, [(AT, T.TimestampType())])
        return self._shown(rows, move, schemas)

    def _given(self, inputs: Sequence[Annotated], capture: Capture) -> tuple[DataFrame, Annotation]:
        """Write the rows of all inputs the way the machine takes them."""
        if len(inputs) == 1:
            [only] = inputs
            return self._written(only.df, 0, only.annotation, capture), only.annotation
        first, second = inputs
        moves = capture.either(first.annotation, second.annotation)
        written = [
            self._written(move.apply(side.df, side.annotation.columns), i, move.annotation, capture)
            for i, (side, move) in enumerate(zip(inputs, moves, strict=True))
        ]
        return written[0].union(written[1]), moves[0].annotation

    def _written(
        self, df: DataFrame, number: int, annotation: Annotation, capture: Capture
    ) -> DataFrame:
        lane = self.lanes[number]
        time = named(lane.time)
        value = F.lit("") if self.value is None else given_value(_comparable(df, self.value))
        keys = text_of([(quote(key), df.schema[key].dataType) for key in lane.keys])
        return df.filter(time.isNotNull()).select(
            F.expr(str(keys) if lane.keys else "''").alias(KEY),
            # The event time itself: Spark leaves late rows out by it.
            time.alias(_TIME),
            F.unix_micros(time).alias(MICROS),
            F.to_json(F.struct(*[named(c) for c in user_columns(df)]), JSON).alias(ROW),
            capture.pack(annotation).alias(NOTE),
            F.lit(number).alias(LANE),
            value.alias(VALUE),
        )

    def _paired(self, made: DataFrame, schemas: Sequence[T.StructType]) -> DataFrame:
        """Put the rows of two inputs together that belong together, and leave out where none do."""
        assert self.on is not None
        condition, fresh = self.on, self.pairs == "new"

        def lane(number: int) -> Column:
            return F.filter(named(_MEMBERS), lambda m: m[LANES] == number)

        def row(member: Column, number: int) -> Column:
            return F.from_json(member[ROWS], schemas[number], JSON)

        def belong(pair: Column) -> Column:
            both = condition(pair["left"], pair["right"])
            return both & pair["fresh"] if fresh else both

        def pair(left: Column) -> Callable[[Column], Column]:
            return lambda right: F.struct(
                row(left, 0).alias("left"),
                row(right, 1).alias("right"),
                F.array(left[NOTES], right[NOTES]).alias("notes"),
                ((left[TIMES] == named(_MICROS)) | (right[TIMES] == named(_MICROS))).alias("fresh"),
            )

        all_pairs = F.flatten(F.transform(lane(0), lambda left: F.transform(lane(1), pair(left))))
        zipped = made.withColumns(
            {
                _MEMBERS: F.arrays_zip(*[named(c) for c in (TIMES, ROWS, NOTES, LANES)]),
                _MICROS: F.unix_micros(named(AT)),
            }
        )
        paired = zipped.withColumn(_PAIRS, all_pairs)
        paired = paired.withColumn(_PAIRS, F.filter(named(_PAIRS), belong))
        paired = paired.filter(F.size(named(_PAIRS)) > 0)
        notes = F.array_distinct(F.flatten(F.transform(named(_PAIRS), lambda p: p["notes"])))
        kept = F.transform(named(_PAIRS), lambda p: F.struct(p["left"], p["right"]))
        return paired.select(named(AT), kept.alias(ROWS), notes.alias(NOTES))

    def _shown(self, rows: DataFrame, move: Move, schemas: Sequence[T.StructType]) -> Annotated:
        """Give the results the columns that the user sees."""
        hidden = [named(c) for c in move.annotation.columns]
        df = move.apply(rows, ())
        lane = self.lanes[0]
        first = F.element_at(named(ROWS), 1)
        if isinstance(self.machine, BoundedSort):
            own = [first[c].alias(c) for c in schemas[0].names]
            return Annotated(df.select(*own, named(AT).alias(self.into), *hidden), move.annotation)
        one = first["left"] if self.on is not None else first
        keys = [one[k].alias(k) for k in lane.keys]
        return Annotated(
            df.select(*keys, named(AT).alias(lane.time), named(ROWS).alias(self.into), *hidden),
            move.annotation,
        )


def _users(df: DataFrame) -> T.StructType:
    users = set(user_columns(df))
    return T.StructType([f for f in df.schema.fields if f.name in users])


def _read(made: DataFrame, schema: T.StructType) -> DataFrame:
    rows = F.transform(named(ROWS), lambda one: F.from_json(one, schema, JSON))
    return made.select(named(AT), rows.alias(ROWS), named(NOTES))


def _comparable(df: DataFrame, column: str) -> Column:
    """Turn a column into what a machine can compare: a number, or text."""
    kind = df.schema[column].dataType
    if isinstance(kind, T.TimestampType):
        return F.unix_micros(named(column))
    if isinstance(kind, T.DateType):
        return F.unix_date(named(column))
    return named(column)


def kind_of(node: Node, column: str, verb: str) -> T.DataType:
    """Return the type of a column that a verb needs.

    Raises:
        ColumnError: The frame does not have it.
    """
    if column not in node.columns:
        msg = (
            f"`{verb}` needs the column `{column}`, which the frame does not have; it has "
            f"{', '.join(f'`{c}`' for c in node.columns)}."
        )
        raise ColumnError(msg)
    return node.schema[column].dataType


def is_number(kind: T.DataType) -> bool:
    """Tell whether values of a type are compared as numbers."""
    return isinstance(kind, (T.NumericType, T.TimestampType, T.DateType))


def ordered(nodes: Sequence[Node], operator: Ordered) -> Node:
    """Add a machine over rows in order.

    Raises:
        ColumnError: A column is not there, or has a type that cannot be used.
        GraphError: A stream has no watermark, or Spark's state store cannot serve.
    """
    for node, lane in zip(nodes, operator.lanes, strict=True):
        _check_columns(node, lane, operator.name)
        if node.plain.df.isStreaming:
            _check_stream(node, lane, operator.name)
    refuse_reserved([operator.into])
    taken = _taken(nodes[0], operator)
    if operator.into.lower() in taken:
        msg = (
            f"`{operator.name}` adds a column `{operator.into}`, and there is one already.\n\n"
            'Give it another name: `into="..."`.'
        )
        raise ColumnError(msg)
    out = Node(operator, tuple(nodes))
    _ = out.plain.df.schema
    return out


def _taken(node: Node, operator: Ordered) -> set[str]:
    lane = operator.lanes[0]
    whole = isinstance(operator.machine, BoundedSort)
    names = node.columns if whole else [*lane.keys, lane.time]
    return {name.lower() for name in names}


def _check_columns(node: Node, lane: Lane, name: str) -> None:
    sole(node.columns, name, node.plain.df)
    for key in lane.keys:
        kind_of(node, key, name)
    kind = kind_of(node, lane.time, name)
    if not isinstance(kind, T.TimestampType):
        msg = (
            f"rows are put in order by `{lane.time}`, which is {kind.simpleString()} and no "
            f'timestamp.\n\nWrite `.withColumn("{lane.time}", F.col("{lane.time}")'
            '.cast("timestamp"))` before.'
        )
        raise ColumnError(msg)
    for field in node.schema.fields:
        if not _is_text(field.dataType):
            msg = (
                f"rows travel through `{name}` as text, and `{field.name}` is "
                f"{field.dataType.simpleString()}, which would not come back as it was.\n\n"
                f'Drop it before, `.drop("{field.name}")`, or cast it to a type that JSON has.'
            )
            raise ColumnError(msg)


def _is_text(kind: T.DataType) -> bool:
    """Tell whether JSON gives back what it was given."""
    if isinstance(kind, T.StructType):
        return all(_is_text(f.dataType) for f in kind.fields)
    if isinstance(kind, T.ArrayType):
        return _is_text(kind.elementType)
    if isinstance(kind, T.MapType):
        return isinstance(kind.keyType, T.StringType) and _is_text(kind.valueType)
    odd = (T.VariantType, T.NullType, T.AnsiIntervalType, T.CalendarIntervalType)
    return not isinstance(kind, odd)


def _check_stream(node: Node, lane: Lane, name: str) -> None:
    df = node.plain.df
    if WATERMARK not in df.schema[lane.time].metadata:
        msg = (
            f"`{name}` puts the rows of a stream in order by `{lane.time}`, and nothing says for "
            f"how long to wait for rows that come late.\n\nWrite `.withWatermark("
            f'"{lane.time}", "10 seconds")` before `.inOrder(...)`.'
        )
        raise GraphError(msg)
    provider = df.sparkSession.conf.get(_PROVIDER, "")
    if "RocksDB" not in str(provider):
        msg = (
            f"`{name}` keeps its rows in Spark's `transformWithState`, which needs the RocksDB "
            f'state store.\n\nWrite `spark.conf.set("{_PROVIDER}", "{_ROCKSDB}")` before the '
            "query is started."
        )
        raise GraphError(msg)
