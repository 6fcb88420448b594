"""A stream's sources as tables: just the part that is needed, with what is known of lateness.

Which part is needed is told by spans of time per source. Files outside them are not opened: what a
Parquet file covers stands in its footer. Rows outside are left to Spark, which skips row groups by
the same footers. If no file in question can hold a late row, which its footer tells as well, the
check for late rows is left out of the plan.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from pyspark.sql import functions as F
from pyspark.sql import types as T

from clew.again.cover import Cover
from clew.operators.source import Source
from clew.plan.algebra import LATE
from clew.plan.columns import named, quote
from clew.plan.node import rebuilt
from clew.plan.spans import span_column
from clew.sources.identity import (
    KEPT_A,
    KEPT_B,
    KEPT_SEGMENT,
    KafkaIdentity,
    KeptIdentity,
    file_path,
)
from clew.sources.reread import Again
from clew.sources.state import FileState, refuse_changed, state_now
from clew.sources.topics import refuse_other_topics

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from clew.again.held import Held
    from clew.plan.node import Node
    from clew.sources.arrivals import Arrivals

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)
_PATH = "_clew_path"
_MOSTLY = 0.75

Topics = tuple["Mapping[str, str]", "Mapping[int, Mapping[str, str]]", "Collection[int]"]


@dataclass(frozen=True, slots=True)
class Tables:
    """The graph over tables.

    Attributes:
        spark: The session of the query.
        node: The same graph; its sources are tables.
        late: The sources whose rows bring the watermark they were judged by.
        files: How many files are read, for progress and tests; None where tables are read whole.
        states: The files that streams may be read from, as the query found them.
        batches: The batch that read each of them.
        topics: How Kafka is reached, the ids of topics by batch, and the batches that were read.
    """

    spark: SparkSession
    node: Node
    late: tuple[str, ...] = ()
    files: Mapping[str, int] = field(default_factory=dict)
    states: Mapping[str, FileState] = field(default_factory=dict)
    batches: Mapping[str, int] = field(default_factory=dict)
    topics: Sequence[Topics] = ()

    def refuse_changed(self) -> None:
        """Refuse what was read if a source is not as the query read it; ask after reading, too.

        Raises:
            SourceChangedError: A file has changed, or a topic is another.
        """
        refuse_changed(self.spark, self.states, self.batches)
        for each in self.topics:
            refuse_other_topics(*each)


def as_tables(
    node: Node,
    covers: Mapping[str, Cover],
    arrivals: Arrivals | None = None,
    last_batch: int | None = None,
    points: Callable[[str], Path] | None = None,
    first_batch: int = 0,
    held: Held | None = None,
) -> Tables:
    """Put tables in the place of the sources.

    Args:
        node: The graph.
        covers: The parts of each source that are needed; all of it where none are given.
        arrivals: When the rows of streams came in; None for a graph without streams.
        last_batch: Leave out what came after this batch.
        points: Where the connection point of a source is.
        first_batch: Leave out what came before this batch.
        held: What the query's tables held; None to take them as they are.

    Raises:
        SourceChangedError: A source is not as the query read it.
    """
    sources: dict[int, Source] = {}
    late: list[str] = []
    files: dict[str, int] = {}
    states: dict[str, FileState] = {}
    read_by: set[int] = set()
    topics: list[Topics] = []
    came = {} if arrivals is None else arrivals.between(first_batch, last_batch).files
    for each in node.walk():
        source = each.operator
        if not isinstance(source, Source):
            continue
        again = source.again
        assert isinstance(again, Again)
        cover = covers.get(source.origin.name, Cover())
        if again.point is not None:
            assert arrivals is not None
            assert points is not None
            folder = points(source.origin.name)
            source, df = _point(source, cover, arrivals.between(first_batch, last_batch), folder)
        elif again.is_stream:
            assert arrivals is not None
            if again.options:
                topics.append(_topics_read(again, arrivals.between(first_batch, last_batch)))
                refuse_other_topics(*topics[-1])
            df, wanted = _stream(source, cover, arrivals.between(first_batch, last_batch))
            files[source.origin.name] = len(wanted)
            read_by |= {came[path] for path in wanted}
            states |= _states(wanted, arrivals)
        else:
            continue
        if LATE in df.columns:
            late.append(source.origin.name)
        sources[each.id] = replace(source, df=df)
    if arrivals is not None:
        read_by |= _read_anyway(node, arrivals.between(first_batch, last_batch))
    tables, more = _whole_tables(node, covers, held, read_by)
    if held is not None:
        came = {**came, **dict.fromkeys(more, held.last)}
    # Asking the new graph for its session would build the whole query once more.
    spark, whole = node.plain.df.sparkSession, rebuilt(node, {**sources, **tables})
    return Tables(spark, whole, tuple(late), files, states | more, came, topics)


def _read_anyway(node: Node, arrivals: Arrivals) -> set[int]:
    """Return the batches of which records are read whatever is needed of them."""
    found = {one.batch for every in arrivals.topics.values() for one in every}
    if any(_is_kept(each) for each in node.walk()):
        found |= set(arrivals.files.values())
    return found


def _whole_tables(
    node: Node, covers: Mapping[str, Cover], held: Held | None, read_by: set[int]
) -> tuple[dict[int, Source], dict[str, FileState]]:
    """Read the sources that are no streams, as they were when batches read them."""
    sources: dict[int, Source] = {}
    states: dict[str, FileState] = {}
    for each in node.walk():
        source = each.operator
        if not isinstance(source, Source):
            continue
        again, name = source.again, source.origin.name
        assert isinstance(again, Again)
        if again.is_stream:
            continue
        df = again.read(source.df, source.origin.schema)
        if held is not None:
            df, more = held.narrowed(df, name, read_by)
            states |= more
        sources[each.id] = replace(source, df=_within(df, source, covers.get(name, Cover())))
    return sources, states


def _topics_read(again: Again, arrivals: Arrivals) -> Topics:
    ids = {number: each.topics for number, each in arrivals.batches.items()}
    return (
        dict(again.options),
        ids,
        {one.batch for every in arrivals.topics.values() for one in every},
    )


def _states(files: Iterable[str], arrivals: Arrivals) -> dict[str, FileState]:
    return {path: arrivals.states[path] for path in files if path in arrivals.states}


def _is_kept(node: Node) -> bool:
    again = node.operator.again if isinstance(node.operator, Source) else None
    return isinstance(again, Again) and again.point is not None


def _stream(source: Source, cover: Cover, arrivals: Arrivals) -> tuple[DataFrame, list[str]]:
    again = source.again
    assert isinstance(again, Again)
    schema = source.origin.schema
    if isinstance(source.origin.identity, KafkaIdentity):
        return _topics(source, cover, arrivals), []
    time = span_column(source.origin)
    known = {path: batch for path, batch in arrivals.files.items() if is_under(path, again.folder)}
    held = {path: _span(path, time, arrivals.states.get(path)) for path in known}
    wanted = [p for p, c in held.items() if c is None or c == () or cover.meets(*c)]
    # Spark reads all files of a table, but of a folder only those that are named.
    spark = source.df.sparkSession
    refuse_changed(spark, _states(known if again.table is not None else wanted, arrivals), known)
    if not wanted:
        return again.read(source.df, schema).filter(F.lit(False)), []
    table = again.read(source.df, schema, sorted(wanted) if again.table is None else None)
    lates = {path: arrivals.late_us(known[path]) for path in wanted}
    if cover.loose and _is_mostly_within(cover, [held[path] for path in wanted]):
        cover = Cover()
    if again.table is None and not any(_may_be_late(held[p], lates[p]) for p in wanted):
        return _within(table, source, cover), wanted
    kind = T.StructType().add(_PATH, T.StringType()).add(LATE, T.LongType())
    judged = spark.createDataFrame(list(lates.items()), kind)
    # An inner join: a file that no batch of the query has read is not part of the stream.
    same = F.expr(f"{file_path()} = {_PATH}")
    joined = _within(table, source, cover).join(F.broadcast(judged), same)
    return joined.drop(_PATH), wanted


def _span(path: str, time: str | None, state: FileState | None) -> tuple[int, ...] | None:
    """Return what a file's rows covered when it was read; None if that is not known."""
    if time is None:
        return None
    if state is not None and state.span is not None:
        return state.span
    return covered(path, time)


def _is_mostly_within(cover: Cover, files: Sequence[tuple[int, ...] | None]) -> bool:
    """Tell whether there is little to leave out.

    Each condition with other times is other code, which Spark compiles and Java first interprets:
    that takes longer than reading some rows more.
    """
    spans = [each for each in files if each]
    if len(spans) < len(files):
        return False
    held = sum(high - low + 1 for low, high in spans)
    return sum(cover.within(*each) for each in spans) >= _MOSTLY * held


def _point(
    source: Source, cover: Cover, arrivals: Arrivals, folder: Path
) -> tuple[Source, DataFrame]:
    """Read what a connection point keeps of a source."""
    assert isinstance(source.again, Again)
    kept = source.again.point or ()
    schema = T.StructType([f for f in source.origin.schema.fields if f.name in kept])
    with_ids = T.StructType([*schema.fields])
    for name in (KEPT_A, KEPT_B):
        with_ids = with_ids.add(name, T.LongType())
    with_ids = with_ids.add(KEPT_SEGMENT, T.StringType())
    files = [str(p) for p in sorted(folder.glob("*/*.parquet"))]
    spark = source.df.sparkSession
    table = (
        spark.read.schema(with_ids).parquet(*files)
        if files
        else spark.createDataFrame([], with_ids)
    )
    if isinstance(source.origin.identity, KafkaIdentity):
        judged = _judged(table, (KEPT_SEGMENT, KEPT_B), arrivals)
    else:
        known = [(path, arrivals.late_us(batch)) for path, batch in arrivals.files.items()]
        kind = T.StructType().add(_PATH, T.StringType()).add(LATE, T.LongType())
        lates = F.broadcast(spark.createDataFrame(known, kind))
        judged = table.join(lates, F.col(KEPT_SEGMENT) == named(_PATH)).drop(_PATH)
    origin = replace(source.origin, identity=KeptIdentity(), schema=schema)
    here = replace(source, origin=origin)
    return here, _within(judged, here, cover)


def _within(df: DataFrame, source: Source, cover: Cover) -> DataFrame:
    """Keep the rows in the parts that are needed; Spark skips row groups by the same condition."""
    name = span_column(source.origin)
    if name is None or cover.spans is None:
        return df
    column = quote(name)
    parts = [
        f"{column} BETWEEN timestamp_micros({span.low}L) AND timestamp_micros({span.high}L)"
        for span in cover.spans
    ]
    # A row without a time lies in no span, and may have contributed all the same.
    return df.filter(" OR ".join([f"{column} IS NULL", *parts]))


def _topics(source: Source, cover: Cover, arrivals: Arrivals) -> DataFrame:
    """Read the needed part of a stream's topics, with the watermark each record was judged by."""
    again = source.again
    assert isinstance(again, Again)
    if not again.options:
        table = again.read(source.df, source.origin.schema)
    else:
        ends = {key: read[-1].end for key, read in arrivals.topics.items()}
        # The first record at or after a time is found by Kafka; no earlier one can be needed.
        # The end is where the query stopped: times need not ascend, so a later one may be.
        spans = cover.spans if span_column(source.origin) == "timestamp" else None
        since = min(span.low for span in spans) // 1000 if spans else None
        table = again.read_topics(source.df, ends, since)
    judged = _judged(table, ("concat_ws('-', topic, `partition`)", "`offset`"), arrivals)
    return _within(judged, source, cover)


def _judged(table: DataFrame, place: tuple[str, str], arrivals: Arrivals) -> DataFrame:
    """Find the batch of each record, and leave out records that no batch has read.

    Args:
        table: The records.
        place: SQL for topic and partition, as in `topic-0`, and for the offset.
        arrivals: What was read of each partition, and when.
    """
    every = [each for read in arrivals.topics.values() for each in read]
    # Stretches are looked up by offset divided by their usual length, so that a record is compared
    # with one or two of them and not with all since the query began.
    size = max(1, sum(each.end - each.first for each in every) // max(1, len(every)))
    rows = [
        (f"{topic}-{partition}", slot, each.first, each.end, arrivals.late_us(each.batch))
        for (topic, partition), read in arrivals.topics.items()
        for each in read
        for slot in range(each.first // size, (each.end - 1) // size + 1)
    ]
    kind = "_clew_part string, _clew_slot bigint, _clew_first bigint, _clew_end bigint"
    known = table.sparkSession.createDataFrame(rows, f"{kind}, {LATE} bigint")
    part, offset = place
    same = (
        f"{part} = _clew_part AND {offset} div {size}L = _clew_slot "
        f"AND {offset} >= _clew_first AND {offset} < _clew_end"
    )
    joined = table.join(F.broadcast(known), F.expr(same))
    return joined.drop("_clew_part", "_clew_slot", "_clew_first", "_clew_end")


def _may_be_late(covered: tuple[int, ...] | None, late: int | None) -> bool:
    if late is None:
        return False
    return covered is None or (len(covered) > 0 and covered[0] <= late)


def times_of(node: Node) -> dict[str, str]:
    """Name the folders that streams read, and the column of each with the event time."""
    found = {}
    for each in node.walk():
        source = each.operator
        if not isinstance(source, Source) or not isinstance(source.again, Again):
            continue
        folder, column = source.again.folder, span_column(source.origin)
        if source.again.is_stream and folder is not None and column is not None:
            found[folder] = column
    return found


def addresses_of(node: Node) -> list[dict[str, str]]:
    """List how Kafka is reached, for the topics that are read again."""
    found = [each.operator.again for each in node.walk() if isinstance(each.operator, Source)]
    return [dict(each.options) for each in found if isinstance(each, Again) and each.options]


def is_under(path: str, folder: str | None) -> bool:
    """Tell whether a file lies in a folder, however both are spelled; in none, all do."""
    return folder is None or local_path(path).is_relative_to(local_path(folder))


def local_path(path: str) -> Path:
    """Return where a file of Spark's is on this machine: it writes paths percent-encoded."""
    return Path(unquote(urlsplit(path).path))


def covered(path: str, column: str) -> tuple[int, ...] | None:
    """Read from a Parquet file's footer what its rows cover; None if it does not say."""
    return _covered(path, column, state_now(path))


@lru_cache(maxsize=100_000)
def _covered(path: str, column: str, _: FileState | None) -> tuple[int, ...] | None:
    """Read a footer, once for each state of the file."""
    import pyarrow.parquet as pq

    if not path.startswith("file:") or not path.endswith(".parquet"):
        return None
    try:
        meta = pq.read_metadata(local_path(path))
        index = next((i for i, c in enumerate(_columns(meta)) if c == column), None)
        if meta.num_rows == 0:
            return ()
        if index is None:
            return None
        found = [meta.row_group(g).column(index).statistics for g in range(meta.num_row_groups)]
        if any(s is None or not s.has_min_max or s.null_count for s in found):
            return None
        return min(_micros(s.min) for s in found), max(_micros(s.max) for s in found)
    except (OSError, ValueError, TypeError):
        return None


def _columns(meta: object) -> list[str]:
    schema = meta.schema  # type: ignore[attr-defined]
    return [schema.column(i).path for i in range(len(schema))]


def _micros(value: object) -> int:
    if not isinstance(value, dt.datetime):
        raise TypeError
    at = value if value.tzinfo else value.replace(tzinfo=dt.timezone.utc)
    return (at - _EPOCH) // dt.timedelta(microseconds=1)
