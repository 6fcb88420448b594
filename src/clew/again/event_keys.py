"""The keys of a stream's rows, computed from the sources as they were read.

A query in progress shows its last rows only: what a filter drops or a window takes in is gone by
then. So keys are computed behind it, over the batches' own sources as tables, with the rows that
were late left out and the windows that are still open as well. Columns that no key needs are not
computed, which leaves little more than reading ids.

What came out in some batches is what had come out by the last of them, less what had come out
before the first. A stream behind no step that keeps state needs no such difference: its rows come
from the rows of the same batches.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql import types as T

from clew.again.cover import Cover, Span
from clew.again.reach import is_stateful
from clew.again.tables import as_tables
from clew.capture.late import WithoutLate
from clew.capture.latest import LATEST, begin_anew, latest
from clew.capture.sets import content
from clew.expiry.bound import bounds
from clew.plan.columns import ID_A, ID_B, is_hidden, named
from clew.plan.mask import masking_with
from clew.plan.node import interpret, mask_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import Column, DataFrame

    from clew.again.held import Held
    from clew.again.recorded_streams import Recorded, Time
    from clew.again.tables import Tables
    from clew.plan.node import Annotated, Node
    from clew.sources.arrivals import Arrivals

_END_OF_TIME = (1 << 62) - 1
_OLD = "_clew_old"


@dataclass(frozen=True, slots=True)
class Batches:
    """Some batches of a query, from one to another.

    Attributes:
        arrivals: When rows came in; None for a query over tables, which has one batch.
        first: The first.
        last: The last.
        held: What the query's tables held.
        seen: What was read, to be looked at again once it was computed.
    """

    arrivals: Arrivals | None
    first: int
    last: int
    held: Held | None = None
    seen: list[Tables] = field(default_factory=list)

    def read(self, node: Node, covers: Mapping[str, Cover], last: int, first: int = 0) -> Tables:
        """Read the sources as the batches did."""
        tables = as_tables(node, covers, self.arrivals, last, first_batch=first, held=self.held)
        self.seen.append(tables)
        return tables

    def refuse_changed(self) -> None:
        """Refuse what was computed if a source changed meanwhile.

        Raises:
            SourceChangedError: One has.
        """
        for each in self.seen:
            each.refuse_changed()


def keys_of(
    stream: Recorded, recorded: Sequence[Recorded], batches: Batches, *, with_content: bool
) -> DataFrame:
    """Compute the keys of the rows that came out of a step in some batches.

    Args:
        stream: The stream.
        recorded: All streams that are recorded: delays count from the nearest.
        batches: The batches.
        with_content: Add the rows themselves.

    Returns:
        `a`, `b`, `time`, `delay` in microseconds and, if asked for, `row`.
    """
    own = {each.node.id: each.time for each in recorded if each.node.id != stream.node.id}
    if batches.arrivals is None:
        tables = batches.read(stream.node, {}, batches.last)
        return _rows(stream, tables, None, own, with_content=with_content)
    if not any(is_stateful(each) for each in stream.node.walk()):
        tables = batches.read(stream.node, {}, batches.last, batches.first)
        return _rows(stream, tables, None, own, with_content=with_content)
    covers = _still_needed(stream.node, batches)

    def up_to(last: int, *, with_content: bool) -> DataFrame:
        assert batches.arrivals is not None
        tables = batches.read(stream.node, covers, last)
        closed = batches.arrivals.batches[last].watermark_ms * 1000
        return _rows(stream, tables, closed, own, with_content=with_content)

    rows = up_to(batches.last, with_content=with_content)
    if batches.first == 0:
        return rows
    before = up_to(batches.first - 1, with_content=False).select("a", "b", F.lit(1).alias(_OLD))
    # No anti join: Spark 4.3 moves one to where windows are made, and fails to compile it there.
    marked = rows.join(before.dropDuplicates(["a", "b"]), ["a", "b"], "left")
    return marked.filter(named(_OLD).isNull()).drop(_OLD)


def _still_needed(node: Node, batches: Batches) -> dict[str, Cover]:
    """Leave out source rows that were done before the first batch.

    A window that closed before it may lose some of its rows by this, and has another content then.
    So it must lose the same ones each time, to be there both times or not at all.
    """
    assert batches.arrivals is not None
    if batches.first == 0:
        return {}
    watermark = batches.arrivals.batches[batches.first - 1].watermark_ms * 1000
    covers = {}
    for source, bound in bounds(node).items():
        if bound.micros is not None and not bound.by_arrival and watermark > 0:
            covers[source] = Cover((Span(watermark - bound.micros - 1, _END_OF_TIME),))
    return covers


def _rows(
    stream: Recorded,
    tables: Tables,
    closed_us: int | None,
    recorded: Mapping[int, Time | None],
    *,
    with_content: bool,
) -> DataFrame:
    def after(node: Node, made: Annotated) -> Annotated:
        time = recorded.get(node.id)
        return made if time is None else begin_anew(made, time.sql)

    capture = WithoutLate(LATEST, tables.late, closed_us)
    built = interpret(tables.node, capture, check=False, after=after)
    time = F.expr(f"CAST({stream.time.sql} AS TIMESTAMP)") if stream.time else F.lit(None)
    columns = [
        named(ID_A).alias("a"),
        named(ID_B).alias("b"),
        time.cast(T.TimestampType()).alias("time"),
        _delay(stream, built).alias("delay"),
    ]
    if with_content:
        users = [(f.name, f.dataType) for f in built.df.schema.fields if not is_hidden(f.name)]
        with masking_with(mask_of(tables.node)):
            columns.append(F.expr(content(users)[0]).alias("row"))
    return built.df.select(*columns)


def _delay(stream: Recorded, built: Annotated) -> Column:
    behind = latest(built.annotation)
    if stream.time is None or behind is None:
        return F.lit(None).cast(T.LongType())
    if stream.is_first:
        return F.lit(0).cast(T.LongType())
    return F.expr(f"unix_micros(CAST({stream.time.sql} AS TIMESTAMP))") - behind
