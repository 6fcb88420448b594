"""`TracedFrame`: the verbs of a DataFrame, recorded instead of run.

Each method has the name and signature of Spark's own, adds one node to the operator graph and
returns a new frame. It holds no rules: what a verb does to rows and to their provenance is in
`clew.operators`. `plain` gives Spark's own DataFrame of what was recorded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from clew.exceptions import ColumnError, GraphError, RefusedVerbError
from clew.frame.group import TracedGroup
from clew.frame.locate import column_position, locate, maker
from clew.frame.ordered_rows import OrderedRows, in_order
from clew.frame.refused import REFUSED
from clew.operators import dedup as _dedup
from clew.operators import join as _join
from clew.operators import keep as _keep
from clew.operators import named as _named
from clew.operators import opaque as _opaque
from clew.operators import project as _project
from clew.operators import property as _property
from clew.operators import setops as _setops
from clew.operators import through as _through
from clew.operators import union as _union
from clew.operators import unpivot as _unpivot
from clew.plan.columns import (
    all_of,
    bare_reference,
    frame_of_all,
    is_hidden,
    quote,
    referring,
    spelling,
    user_columns,
)
from clew.plan.node import Node
from clew.run.batch import TracedWriter
from clew.run.recover import recover
from clew.run.stream import TracedStreamWriter
from clew.run.subscribe import subscribe, with_properties

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pandas as pd
    import pyarrow as pa
    from pyspark.sql import Row, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.types import StructType
    from pyspark.storagelevel import StorageLevel

    from clew.operators.dedup import Contributes
    from clew.operators.through import Late

ColumnOrName = "Column | str"


class TracedFrame:
    """A DataFrame whose rows can be traced.

    Made by `clew.trace(...)`; every verb returns another one. The verbs are Spark's, with its
    names and signatures. Actions such as `show` and `collect` run the query as it is, without
    provenance; `write` and `writeStream` take a place for provenance.
    """

    def __init__(self, node: Node) -> None:
        self._node = node

    # What it is

    @property
    def plain(self) -> DataFrame:
        """Spark's own DataFrame of the recorded verbs, without any annotation."""
        df = self._node.plain.df
        hidden = [name for name in df.columns if is_hidden(name)]
        return df.drop(*hidden) if hidden else df

    @property
    def node(self) -> Node:
        """The operator graph up to here."""
        return self._node

    @property
    def schema(self) -> StructType:
        """The schema of the user's columns."""
        return self._node.schema

    @property
    def columns(self) -> list[str]:
        """The names of the user's columns."""
        return self._node.columns

    @property
    def dtypes(self) -> list[tuple[str, str]]:
        """Names and types of the user's columns."""
        return self.plain.dtypes

    @property
    def isStreaming(self) -> bool:
        """Whether the frame is a stream."""
        return self.plain.isStreaming

    @property
    def sparkSession(self) -> SparkSession:
        """The session that the source belongs to."""
        return self.plain.sparkSession

    @property
    def storageLevel(self) -> StorageLevel:
        """How the untraced frame is persisted."""
        return self.plain.storageLevel

    @property
    def write(self) -> TracedWriter:
        """Write a batch frame, with provenance if a place for it is named."""
        return TracedWriter(self._node)

    @property
    def writeStream(self) -> TracedStreamWriter:
        """Write a stream, with provenance if a place for it is named."""
        return TracedStreamWriter(self._node)

    def recover(
        self, path: str, *, name: str, checkpoint: str, where: Column | str | None = None
    ) -> None:
        """Compute the provenance of a stream that ran without any, into a store.

        What the query has emitted is computed again from its checkpoint and its sources, as long
        as those still hold it, and the store then answers as if it had been captured.

        Args:
            path: The store; it is made if it is not there.
            name: The stream of the results.
            checkpoint: The folder that the query was given as `checkpointLocation`.
            where: Only results that meet this condition.

        Raises:
            CaptureRefusedError: The query does not give the same results again.
            ReplayError: The checkpoint or the source no longer holds what is needed.
        """
        recover(self._node, path, name=name, checkpoint=checkpoint, where=where)

    @property
    def na(self) -> TracedNa:
        """Verbs for missing values."""
        return TracedNa(self)

    def __repr__(self) -> str:
        kinds = " -> ".join(n.operator.kind for n in self._node.walk())
        fields = ", ".join(f"{name}: {kind}" for name, kind in self.dtypes)
        return f"TracedFrame[{fields}] ({kinds})"

    # Columns

    def __getitem__(self, item: str | int | Column | list[Any] | tuple[Any, ...]) -> Any:
        if isinstance(item, str):
            return self._column(item)
        if isinstance(item, int):
            return self._reference(item)
        if isinstance(item, Column):
            return self.filter(item)
        return self.select(*item)

    def __getattr__(self, name: str) -> Column:
        if name in REFUSED:
            raise RefusedVerbError(name, REFUSED[name])
        if name.startswith("_") or name not in self.columns:
            msg = f"a traced frame has no verb and no column `{name}`"
            raise AttributeError(msg)
        return self._column(name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *(c for c in self.columns if c.isidentifier())})

    def _column(self, name: str) -> Column:
        if name == "*":
            return all_of(self._node.id)
        position, called, path = column_position(self.columns, name, spelling(self._node.plain.df))
        column = self._reference(position, called)
        for part in path:
            column = column.getField(part)
        # Spark calls it by the last part of its name, and a field of a column by all of them.
        return column.alias(path[-1]) if path else column

    def _reference(self, position: int, called: str | None = None) -> Column:
        columns = self.columns
        name = columns[position]
        spelt = spelling(self._node.plain.df)
        if sum(spelt(c) == spelt(name) for c in columns) > 1:
            msg = (
                f"the frame has two columns called `{name}`.\n\nTake it from the frame it came "
                'from, before the join, or give the sides names with `.alias("a")` and write '
                f'`F.col("a.{name}")`.'
            )
            raise ColumnError(msg)
        at = position % len(columns)
        field = self.schema.fields[at]
        column = referring(self._node.id, at, field, called or name)
        self._node.referenced.add(at)
        return column

    # Row by row

    def select(self, *cols: Any, partition: Sequence[str] | None = None) -> TracedFrame:
        """Compute columns.

        Args:
            cols: Columns or names, as in Spark.
            partition: For window functions in batch, the columns of their `partitionBy`.
        """
        flat = [column for given in _flat(cols) for column in self._all_meant(given)]
        return TracedFrame(_project.select(self._node, flat, partition))

    def _all_meant(self, column: Column | str) -> list[Column | str]:
        """Put the columns of a frame in the place of `frame["*"]`, which behind a join has more."""
        number = frame_of_all(column)
        if number is None:
            return [column]
        if number == self._node.id:
            return ["*"]
        origin = next((each for each in self._node.walk() if each.id == number), None)
        if origin is None:
            msg = '`frame["*"]` was taken from a frame that this one was not made from.'
            raise ColumnError(msg)
        frame = TracedFrame(origin)
        return [frame._reference(at) for at in range(len(frame.columns))]

    def selectExpr(self, *expr: Any, partition: Sequence[str] | None = None) -> TracedFrame:
        """Compute columns from SQL text."""
        texts = [text for each in expr for text in (each if isinstance(each, list) else [each])]
        return self.select(*[F.expr(text) for text in texts], partition=partition)

    def withColumn(
        self,
        colName: str,
        col: Column,
        *,
        partition: Sequence[str] | None = None,
    ) -> TracedFrame:
        """Add or replace a column."""
        return self.withColumns({colName: col}, partition=partition)

    def withColumns(
        self,
        *colsMap: dict[str, Column],
        partition: Sequence[str] | None = None,
    ) -> TracedFrame:
        """Add or replace several columns."""
        [columns] = colsMap
        return TracedFrame(_project.with_columns(self._node, columns, partition))

    def withColumnRenamed(self, existing: str, new: str) -> TracedFrame:
        """Rename a column."""
        return TracedFrame(_project.reshape(self._node, "withColumnRenamed", existing, new))

    def withColumnsRenamed(self, colsMap: dict[str, str]) -> TracedFrame:
        """Rename several columns."""
        return TracedFrame(_project.reshape(self._node, "withColumnsRenamed", colsMap))

    def toDF(self, *cols: str) -> TracedFrame:
        """Rename all columns."""
        if len(cols) != len(self.columns):
            msg = f"`toDF` needs {len(self.columns)} names, one for each column; got {len(cols)}."
            raise ColumnError(msg)
        return TracedFrame(_project.reshape(self._node, "toDF", *cols))

    def to(self, schema: StructType) -> TracedFrame:
        """Reorder and cast columns to a schema."""
        return TracedFrame(_project.reshape(self._node, "to", schema))

    def drop(self, *cols: Column | str) -> TracedFrame:
        """Drop columns."""
        node = self._node
        names = [c for c in cols if isinstance(c, str)]
        others = [c for c in cols if not isinstance(c, str)]
        if others:
            node = _drop_columns(node, others)
        return TracedFrame(_project.reshape(node, "drop", *names) if names else node)

    def fillna(self, value: Any, subset: Any = None) -> TracedFrame:
        """Replace nulls."""
        if isinstance(value, dict):
            return TracedFrame(_project.reshape(self._node, "fillna", value))
        return TracedFrame(_project.reshape(self._node, "fillna", value, self._subset(subset)))

    def dropna(
        self, how: str = "any", thresh: int | None = None, subset: Any = None
    ) -> TracedFrame:
        """Drop rows with nulls."""
        names = user_columns(self._node.plain.df) if subset is None else self._subset(subset)
        return TracedFrame(_keep.keep(self._node, "dropna", how, thresh, names))

    def replace(self, to_replace: Any, value: Any = None, subset: Any = None) -> TracedFrame:
        """Replace values by others."""
        args = (
            [to_replace] if isinstance(to_replace, dict) and value is None else [to_replace, value]
        )
        return TracedFrame(
            _project.reshape(self._node, "replace", *args, subset=self._subset(subset))
        )

    def unpivot(
        self,
        ids: Any,
        values: Any,
        variableColumnName: str,
        valueColumnName: str,
    ) -> TracedFrame:
        """Turn columns into rows."""
        return TracedFrame(
            _unpivot.unpivot(self._node, ids, values, variableColumnName, valueColumnName)
        )

    melt = unpivot

    def filter(self, condition: Column | str) -> TracedFrame:
        """Keep the rows that meet a condition."""
        return TracedFrame(_keep.filter_rows(self._node, condition))

    where = filter

    # As they are

    def alias(self, alias: str) -> TracedFrame:
        """Give the frame a name for `F.col("name.column")`."""
        return TracedFrame(_keep.keep(self._node, "alias", alias))

    def withWatermark(self, eventTime: str, delayThreshold: str) -> TracedFrame:
        """Say how late rows may be."""
        return TracedFrame(_keep.keep(self._node, "withWatermark", eventTime, delayThreshold))

    def orderBy(self, *cols: Any, **kwargs: Any) -> TracedFrame:
        """Sort rows."""
        return TracedFrame(_keep.keep(self._node, "orderBy", *cols, **kwargs))

    sort = orderBy

    def sortWithinPartitions(self, *cols: Any, **kwargs: Any) -> TracedFrame:
        """Sort rows inside each task."""
        return TracedFrame(_keep.keep(self._node, "sortWithinPartitions", *cols, **kwargs))

    def limit(self, num: int) -> TracedFrame:
        """Keep the first rows."""
        return TracedFrame(_keep.keep(self._node, "limit", num))

    def offset(self, num: int) -> TracedFrame:
        """Leave out the first rows."""
        return TracedFrame(_keep.keep(self._node, "offset", num))

    def sample(self, *args: Any, **kwargs: Any) -> TracedFrame:
        """Keep a random part of the rows."""
        return TracedFrame(_keep.keep(self._node, "sample", *args, **kwargs))

    def repartition(self, *args: Any) -> TracedFrame:
        """Spread rows anew over tasks."""
        return TracedFrame(_keep.keep(self._node, "repartition", *args))

    def repartitionByRange(self, *args: Any) -> TracedFrame:
        """Spread rows over tasks by ranges of values."""
        return TracedFrame(_keep.keep(self._node, "repartitionByRange", *args))

    def repartitionById(self, *args: Any) -> TracedFrame:
        """Spread rows over tasks by a number that they hold."""
        return TracedFrame(_keep.keep(self._node, "repartitionById", *args))

    def coalesce(self, numPartitions: int) -> TracedFrame:
        """Use fewer tasks."""
        return TracedFrame(_keep.keep(self._node, "coalesce", numPartitions))

    def hint(self, name: str, *parameters: Any) -> TracedFrame:
        """Give the optimiser a hint."""
        return TracedFrame(_keep.keep(self._node, "hint", name, *parameters))

    def observe(self, observation: Any, *exprs: Column) -> TracedFrame:
        """Observe metrics while the query runs."""
        return TracedFrame(_keep.keep(self._node, "observe", observation, *exprs))

    def persist(self, *args: Any) -> TracedFrame:
        """Keep computed rows for the next use."""
        return TracedFrame(_keep.keep(self._node, "persist", *args))

    def cache(self) -> TracedFrame:
        """Keep computed rows for the next use."""
        return TracedFrame(_keep.keep(self._node, "cache"))

    def unpersist(self, blocking: bool = False) -> TracedFrame:
        """Forget computed rows, those that were kept with their provenance as well."""
        self.plain.unpersist(blocking)
        _keep.forget(self._node, blocking=blocking)
        return self

    def named(self, name: str) -> TracedFrame:
        """Name this frame, so that answers can be about its rows or stop at them."""
        return TracedFrame(_named.name_frame(self._node, name))

    def property(
        self,
        name: str,
        value: Column | Callable[[Column], Column],
        merge: Any = None,
    ) -> TracedFrame:
        """Give each row a property: a value that is merged wherever rows are.

        What results then know of the rows that they come from is there with them, see `properties`
        and `subscribe`; nothing is stored.

        Args:
            name: What to call it.
            value: The value of each row. Where the rows have the property already: a function of
                that value, such as `lambda delay: delay + 2`.
            merge: How several values become one: `sum`, `min`, `max`, `set`, `list`, an aggregate
                function of your own or, where rows are joined, a pair of one and a function of two
                values. Needed where a property begins.

        Raises:
            PropertyError: It is not clear how values are merged.
        """
        return TracedFrame(_property.add_property(self._node, name, value, merge))

    def properties(self) -> DataFrame:
        """Return Spark's DataFrame of the rows, with their properties as further columns.

        Raises:
            PropertyError: The frame has no property, or a column of the name of one.
        """
        return with_properties(self._node)

    def subscribe(
        self,
        name: str,
        to: Any,
        *,
        where: Column | str | None = None,
        checkpoint: str | None = None,
        trigger: dict[str, Any] | None = None,
    ) -> StreamingQuery | None:
        """Deliver results whose property meets a condition, as soon as they are there.

        Args:
            name: The property.
            to: A function that is called with each result, the name of a table, or options of
                Spark's Kafka sink, such as `{"kafka.bootstrap.servers": ..., "topic": ...}`.
            where: The condition, over the result's columns and its properties.
            checkpoint: Where Spark keeps how far the delivery is.
            trigger: When to deliver, as `writeStream.trigger` takes it.

        Returns:
            The running delivery of a stream; None for a batch.

        Raises:
            PropertyError: There is no such property.
        """
        return subscribe(
            self._node, name, where=where, to=to, checkpoint=checkpoint, trigger=trigger
        )

    def transform(self, func: Callable[..., TracedFrame], *args: Any, **kwargs: Any) -> TracedFrame:
        """Apply a function of frames."""
        out = func(self, *args, **kwargs)
        if not isinstance(out, TracedFrame):
            got = type(out).__name__
            msg = f"`transform` needs a function that returns a traced frame; got {got}."
            raise GraphError(msg)
        return out

    # Several rows, several frames

    def through(
        self,
        function: Callable[..., DataFrame],
        *others: TracedFrame,
        key: str | Sequence[str],
        ancestors: Column | str | Sequence[Column | str],
        name: str | None = None,
        late: Late = "refuse",
    ) -> TracedFrame:
        """Run a function of yours over whole frames, and say which rows its results come from.

        Args:
            function: A function of Spark's DataFrames, this frame's and those of `others`, that
                returns one. It is run again when somebody asks, over tables, and has to give the
                same.
            others: Further inputs.
            key: The columns by which results are told apart.
            ancestors: When a result comes from an input row, as a condition over both:
                `"result.meter = input.meter AND input.ts <= result.ts"`; one for each input.
            name: What to call it; by default the function's name.
            late: Of a stream, what the function does with rows that come after the watermark:
                `"kept"` if they count like others; by default answers stop at such a row.
        """
        nodes = [self._node, *[_node(each, "through") for each in others]]
        conditions = [ancestors] if isinstance(ancestors, (str, Column)) else list(ancestors)
        keys = [key] if isinstance(key, str) else list(key)
        return TracedFrame(_through.through(nodes, function, keys, conditions, name, late))

    def inOrder(self, *keys: str, time: str | None = None) -> OrderedRows:
        """Put rows in order, for windows that Spark lacks: by number, by value, with each row.

        Args:
            keys: Rows are in order among those that are equal in these columns.
            time: The event time; by default the column that the watermark is on.
        """
        return in_order(self._node, keys, time)

    def groupBy(self, *cols: Any) -> TracedGroup:
        """Group rows."""
        return TracedGroup(self._node, "groupBy", tuple(_flat(cols)))

    groupby = groupBy

    def rollup(self, *cols: Any) -> TracedGroup:
        """Group rows by each prefix of the columns."""
        return TracedGroup(self._node, "rollup", tuple(_flat(cols)))

    def cube(self, *cols: Any) -> TracedGroup:
        """Group rows by each subset of the columns."""
        return TracedGroup(self._node, "cube", tuple(_flat(cols)))

    def distinct(self) -> TracedFrame:
        """Keep one of each set of equal rows."""
        return TracedFrame(_dedup.dedup(self._node, None))

    def dropDuplicates(
        self, subset: list[str] | None = None, *, contributes: Contributes = "kept"
    ) -> TracedFrame:
        """Keep one row of each set that is equal in some columns.

        Args:
            subset: The columns to compare; all of them by default.
            contributes: `"kept"` traces to the row that was kept, `"all"` (batch) to all it stands
                for.
        """
        return TracedFrame(_dedup.dedup(self._node, subset, contributes=contributes))

    drop_duplicates = dropDuplicates

    def dropDuplicatesWithinWatermark(self, subset: list[str] | None = None) -> TracedFrame:
        """Keep the first of equal rows that arrive within the watermark's delay."""
        return TracedFrame(_dedup.dedup(self._node, subset, within_watermark=True))

    def union(self, other: TracedFrame) -> TracedFrame:
        """Put the rows of both frames together, by position."""
        return TracedFrame(_union.union(self._node, _node(other, "union")))

    unionAll = union

    def unionByName(
        self,
        other: TracedFrame,
        allowMissingColumns: bool = False,
    ) -> TracedFrame:
        """Put the rows of both frames together, by name."""
        second = _node(other, "unionByName")
        return TracedFrame(
            _union.union_by_name(self._node, second, allow_missing=allowMissingColumns)
        )

    def intersect(self, other: TracedFrame) -> TracedFrame:
        """Keep the distinct rows that both frames have."""
        return TracedFrame(
            _setops.set_operation(self._node, _node(other, "intersect"), "intersect")
        )

    def subtract(self, other: TracedFrame) -> TracedFrame:
        """Keep the distinct rows that the other frame has not."""
        return TracedFrame(_setops.set_operation(self._node, _node(other, "subtract"), "subtract"))

    def join(
        self,
        other: TracedFrame,
        on: str | list[str] | Column | list[Column] | None = None,
        how: str | None = None,
    ) -> TracedFrame:
        """Match the rows of two frames."""
        return TracedFrame(_join.join(self._node, _node(other, "join"), on, how))

    def crossJoin(self, other: TracedFrame) -> TracedFrame:
        """Pair every row with every row of the other frame."""
        return TracedFrame(_join.join(self._node, _node(other, "crossJoin"), None, "cross"))

    # Functions over many rows

    def mapInPandas(
        self,
        func: Callable[..., Any],
        schema: StructType | str,
        barrier: bool = False,
        profile: Any = None,
        *,
        carries: str | None = None,
    ) -> TracedFrame:
        """Hand pandas batches to a function that keeps `clew_id` (`carries="id"`)."""
        options = {"barrier": barrier, "profile": profile}
        return TracedFrame(
            _opaque.map_rows(self._node, "mapInPandas", func, schema, carries, options)
        )

    def mapInArrow(
        self,
        func: Callable[..., Any],
        schema: StructType | str,
        barrier: bool = False,
        profile: Any = None,
        *,
        carries: str | None = None,
    ) -> TracedFrame:
        """Hand Arrow batches to a function that keeps `clew_id` (`carries="id"`)."""
        options = {"barrier": barrier, "profile": profile}
        return TracedFrame(
            _opaque.map_rows(self._node, "mapInArrow", func, schema, carries, options)
        )

    # Actions: the query as it is, without provenance

    def show(self, *args: Any, **kwargs: Any) -> None:
        """Print the first rows."""
        self.plain.show(*args, **kwargs)

    def explain(self, *args: Any, **kwargs: Any) -> None:
        """Print Spark's plan of the untraced query."""
        self.plain.explain(*args, **kwargs)

    def printSchema(self, level: int | None = None) -> None:
        """Print the schema."""
        self.plain.printSchema(level)

    def collect(self) -> list[Row]:
        """Return all rows."""
        return self.plain.collect()

    def count(self) -> int:
        """Count the rows."""
        return self.plain.count()

    def isEmpty(self) -> bool:
        """Tell whether there are no rows."""
        return self.plain.isEmpty()

    def first(self) -> Row | None:
        """Return the first row."""
        return self.plain.first()

    def head(self, *args: Any) -> Any:
        """Return the first row or rows."""
        return self.plain.head(*args)

    def take(self, num: int) -> list[Row]:
        """Return the first rows."""
        return self.plain.take(num)

    def tail(self, num: int) -> list[Row]:
        """Return the last rows."""
        return self.plain.tail(num)

    def toLocalIterator(self, *args: Any) -> Iterator[Row]:
        """Iterate over all rows."""
        return self.plain.toLocalIterator(*args)

    def toPandas(self) -> pd.DataFrame:
        """Return all rows as a pandas frame."""
        return self.plain.toPandas()

    def toArrow(self) -> pa.Table:
        """Return all rows as an Arrow table."""
        return self.plain.toArrow()

    def _subset(self, subset: Any) -> list[str]:
        if subset is None:
            return [quote(name) for name in user_columns(self._node.plain.df)]
        return [subset] if isinstance(subset, str) else list(subset)


@dataclass(frozen=True, slots=True)
class TracedNa:
    """The verbs of `frame.na`."""

    _frame: TracedFrame

    def drop(self, how: str = "any", thresh: int | None = None, subset: Any = None) -> TracedFrame:
        """Drop rows with nulls."""
        return self._frame.dropna(how, thresh, subset)

    def fill(self, value: Any, subset: Any = None) -> TracedFrame:
        """Replace nulls."""
        return self._frame.fillna(value, subset)

    def replace(self, to_replace: Any, value: Any = None, subset: Any = None) -> TracedFrame:
        """Replace values by others."""
        return self._frame.replace(to_replace, value, subset)


def _refuse_replaced(node: Node, origin: int, name: str) -> None:
    """Refuse to drop a column that only has the name of the one that was meant.

    Raises:
        ColumnError: It was replaced since; Spark drops nothing then.
    """
    spelt = spelling(node.plain.df)
    for step in node.walk():
        changed = getattr(step.operator, "columns", None)
        if step.id == origin or not isinstance(changed, dict):
            continue
        is_behind = any(each.id == origin for each in step.walk())
        if is_behind and spelt(name) in map(spelt, changed):
            raise _replaced(name)


def _replaced(name: str) -> ColumnError:
    return ColumnError(
        f"`{name}` was replaced since it was taken from its frame, or put under a column of "
        "another frame, and Spark drops nothing then.\n\n"
        f'Write `.drop("{name}")` to drop the new column.'
    )


def _refuse_shared(node: Node, reference: tuple[int, int], at: int) -> None:
    """Refuse to drop a column where Spark would drop another one, or none.

    Raises:
        ColumnError: Both sides of a join have it from one frame, a step has made it anew, or it is
            that of the other frame: behind a union the columns are those of the first.
    """
    steps = list(node.walk())
    origin = next((each for each in steps if each.id == reference[0]), None)
    if origin is None or maker(node, at) == maker(origin, reference[1]):
        return
    name = node.columns[at]
    if not any(isinstance(each.operator, _join.Join) for each in steps):
        raise _replaced(name)
    msg = (
        f"the `{name}` that was meant is not the one that Spark would drop: both sides of a join "
        "were given it by one frame, or a step has made it anew.\n\nGive the sides names, "
        f'`.alias("a")` and `.alias("b")`, and drop `F.col("b.{name}")`; or rename the column of '
        "one side before the join."
    )
    raise ColumnError(msg)


def _flat(cols: Sequence[Any]) -> list[Any]:
    if len(cols) == 1 and isinstance(cols[0], (list, tuple)):
        return list(cols[0])
    return list(cols)


def _node(other: object, verb: str) -> Node:
    if isinstance(other, TracedFrame):
        return other.node
    msg = (
        f"`{verb}` needs a traced frame on both sides; got {type(other).__name__}.\n\n"
        f'Trace the other one too: `.{verb}(clew.trace(other, "name"), ...)`.'
    )
    raise GraphError(msg)


def _drop_columns(node: Node, columns: list[Column]) -> Node:
    positions = []
    for column in columns:
        reference = bare_reference(column)
        if reference is None:
            return _project.reshape(node, "drop", *columns)
        at = locate(node, reference)
        if at is not None:
            _refuse_replaced(node, reference[0], node.columns[at])
            _refuse_shared(node, reference, at)
            positions.append(at)
    names = node.columns
    operator = _project.DropAt(tuple(positions), tuple(names[p] for p in positions))
    return Node(operator, (node,))
