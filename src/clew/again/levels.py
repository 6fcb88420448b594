"""From pointers to edges, level by level.

The sink rows of some batches point at source rows and at groups. A group's pointer is joined with
the rows of that group, which point further; when only source rows are left, those are the edges.
The number of joins is the depth of the query, never the number of rows, and the source is scanned
once for each aggregation that reads it.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from clew.capture.late import WithoutLate
from clew.capture.pointers import (
    GROUP_A,
    GROUP_B,
    SESSION_FROM,
    SESSION_TO,
    Level,
    Pointers,
    PointersCapture,
    carried,
    part_of,
)
from clew.operators.named import Named
from clew.operators.source import Source
from clew.plan.columns import ID_A, ID_B, named
from clew.plan.node import interpret, rebuilt
from clew.store.collect import few_rows

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from clew.again.tables import Tables
    from clew.plan.node import Node

SINK_A = "sink_a"
SINK_B = "sink_b"
_BROADCAST_ROWS = 500_000
_FEW = 50_000
_PLACE = "_clew_place"
# A session's rows are those whose own session, from their time to the end of the gap, lies in it.
_IN_SESSION = f"{SESSION_FROM} >= _clew_w_from AND {SESSION_TO} <= _clew_w_to"


@dataclass(frozen=True, slots=True)
class Found:
    """Edges to one source or named frame.

    Attributes:
        source: The source or named frame.
        edges: `sink_a`, `sink_b`, `source_a`, `source_b`; and `content` if it is known.
        has_content: The content of the source rows came along.
        repeats: An edge may be there several times.
    """

    source: str
    edges: DataFrame
    has_content: bool
    repeats: bool


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows that point on: the sink's own, or those of the groups of a level.

    Attributes:
        df: `sink_a`, `sink_b` and the pointers.
        annotation: What they point at.
        count: How many groups, or rows of the sink, led to them.
        repeats: A row may stand there several times for one row of the sink.
        depth: How many levels lie between them and the sink.
    """

    df: DataFrame
    annotation: Pointers
    count: int
    repeats: bool = False
    depth: int = 0


@dataclass(frozen=True, slots=True)
class _Path:
    """The edges that one pointer leads to."""

    edges: DataFrame
    has_content: bool
    repeats: bool
    count: int


def pointers_of(node: Node) -> Pointers:
    """Return which pointers the rows of a query carry, without running it."""
    annotation = interpret(node, PointersCapture()).annotation
    assert isinstance(annotation, Pointers)
    return annotation


def join_groups(level: Level, wanted: DataFrame, *, is_small: bool) -> DataFrame:
    """Join the rows of a level with the groups that are wanted.

    Where those are few, the first half of the id finds them: one number, for which Spark has a map
    of its own. The second half is compared behind it, and as no equality that Spark could see, or
    it would be computed for all rows first.

    Args:
        level: The rows.
        wanted: The groups: `_clew_w_a`, `_clew_w_b`, and what is to be known of them.
        is_small: They are few enough to be handed to every task.
    """
    first = named(GROUP_A) == named("_clew_w_a")
    if is_small:
        second = level.second.bitwiseXOR(named("_clew_w_b")) == F.lit(0)
        joined = level.rows.join(F.broadcast(wanted), first & second)
    else:
        rows = level.rows.withColumn(GROUP_B, level.second)
        joined = rows.join(wanted, first & (named(GROUP_B) == named("_clew_w_b")))
    return joined.withColumns(dict(level.behind)) if level.behind else joined


class Unfolding:
    """The levels of a query over tables.

    Args:
        tables: The query over the part of its sources that is needed.
    """

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._nodes = {each.id: each for each in tables.node.walk()}
        self._levels: dict[str, Level] = {}
        self._held: list[DataFrame] = []
        self._counter = ThreadPoolExecutor(max_workers=1, thread_name_prefix="clew-levels")

    def follow_named(self, name: str, ids: DataFrame, count: int) -> list[Found]:
        """Follow the pointers of rows of a named frame.

        Args:
            name: The frame.
            ids: The ids `a`, `b` of its rows, each once.
            count: How many there are, about.
        """
        [before] = self._node_of(name).inputs
        built = interpret(before, self._over(PointersCapture(contents=True)), check=False)
        assert isinstance(built.annotation, Pointers)
        wanted = ids.selectExpr(f"a AS {SINK_A}", f"b AS {SINK_B}")
        wanted = F.broadcast(wanted) if count <= _BROADCAST_ROWS else wanted
        rows = built.df.select(*[named(c) for c in built.annotation.columns])
        rows = rows.join(wanted, F.expr(f"{ID_A} = {SINK_A} AND {ID_B} = {SINK_B}"))
        # Equal rows may share an id, so that edges come twice.
        pointing = _Rows(rows, built.annotation, count, repeats=not built.annotation.unique)
        return self._found(pointing)

    def follow(self, rows: DataFrame, annotation: Pointers, count: int) -> list[Found]:
        """Follow the pointers of sink rows to their source rows.

        Args:
            rows: The sink rows: `sink_a`, `sink_b` and their pointers.
            annotation: What they point at.
            count: How many there are, about.
        """
        own = {ID_A: F.col(SINK_A), ID_B: F.col(SINK_B)} if annotation.own else {}
        return self._found(_Rows(rows.withColumns(own), annotation, count))

    def _found(self, rows: _Rows) -> list[Found]:
        paths: dict[str, list[_Path]] = {}
        self._follow(rows, paths)
        out = []
        for source, parts in paths.items():
            repeats = len(parts) > 1 or parts[0].repeats
            # Ids are made unique quickly; with the content beside them Spark would have to sort.
            few = max(each.count for each in parts) <= _FEW
            whole = all(each.has_content for each in parts) and (few or not repeats)
            columns = [SINK_A, SINK_B, "source_a", "source_b", *(["content"] if whole else [])]
            edges = parts[0].edges.select(*columns)
            for more in parts[1:]:
                edges = edges.unionByName(more.edges.select(*columns))
            if repeats and not whole and not few:
                edges, repeats = edges.dropDuplicates(), False
            out.append(Found(source, edges, whole, repeats))
        return out

    def _follow(self, rows: _Rows, paths: dict[str, list[_Path]]) -> None:
        annotation = rows.annotation
        for i, slot in enumerate(annotation.slots):
            if slot.kind == "row":
                a, b = part_of(annotation, i, "a"), part_of(annotation, i, "b")
                has_content = i in annotation.whole
                content = [f"{carried(i)} AS content"] if has_content else []
                own = [SINK_A, SINK_B, f"{a} AS source_a", f"{b} AS source_b"]
                found = rows.df.selectExpr(*own, *content).filter("source_a IS NOT NULL")
                repeats = rows.repeats or slot.target in annotation.repeats
                paths.setdefault(slot.target, []).append(
                    _Path(found, has_content, repeats, rows.count)
                )
                continue
            parts = [f"{part_of(annotation, i, part)} AS _clew_w_{part}" for part in slot.parts]
            wanted = rows.df.selectExpr(SINK_A, SINK_B, *parts)
            wanted = wanted.filter("_clew_w_a IS NOT NULL")
            several = bool(rows.depth) or len(annotation.slots) > 1
            counting = self._counter.submit(self._counted, wanted, rows, several=several)
            level = self._level(slot.target)  # planned while the groups are computed
            wanted, count = counting.result()
            joined = join_groups(level, wanted, is_small=count <= _BROADCAST_ROWS)
            joined = joined.filter(_IN_SESSION) if slot.kind == "session" else joined
            repeats = several and (level.overlaps or (not rows.depth and count <= _FEW))
            below = _Rows(joined, level.annotation, count, repeats, rows.depth + 1)
            self._follow(below, paths)

    def _counted(self, wanted: DataFrame, rows: _Rows, *, several: bool) -> tuple[DataFrame, int]:
        """Compute the groups of a level: how many there are decides how their rows are found."""
        if rows.depth and rows.count <= _FEW // 10:
            table = few_rows(wanted, _FEW)
            if table is not None:
                table = table.group_by(table.column_names).aggregate([])
                return wanted.sparkSession.createDataFrame(table), table.num_rows
        if not rows.depth and rows.count <= _FEW:
            return wanted, rows.count  # edges that come twice for that are few
        wanted = wanted.dropDuplicates() if several else wanted
        if not rows.depth:
            return wanted, rows.count
        held = wanted.persist()
        self._held.append(held)
        return held, held.count()

    def close(self) -> None:
        """Let go of what was computed on the way."""
        self._counter.shutdown()
        for each in self._held:
            each.unpersist()

    def _level(self, target: str) -> Level:
        if target not in self._levels:
            capture = PointersCapture(contents=True)
            interpret(
                self._nodes[int(target.split(".", maxsplit=1)[0])], self._over(capture), check=False
            )
            self._levels.update(capture.levels)
        return self._levels[target]

    def _over(self, capture: PointersCapture) -> WithoutLate:
        return WithoutLate(capture, self._tables.late)

    def rows_with(self, source: str, ids: pa.Table) -> DataFrame:
        """Return the rows of a source or named frame that have one of some ids.

        Args:
            source: The source or named frame.
            ids: The ids `a`, `b`, each once, and few.
        """
        node = self._node_of(source)
        operator, spark = node.operator, self._tables.spark
        number = operator.origin.identity.number if isinstance(operator, Source) else None
        if isinstance(operator, Source) and number is not None:
            # The path behind `a` goes through SHA-256, so `b` chooses the rows for which it does.
            places = ids.select(["b"]).group_by("b").aggregate([]).rename_columns([_PLACE])
            chosen = F.broadcast(spark.createDataFrame(places))
            df = operator.df.join(chosen, F.expr(f"{number} = {_PLACE}"), "leftsemi")
            node = rebuilt(node, {node.id: replace(operator, df=df)})
        return self._contents(node, source).join(
            F.broadcast(spark.createDataFrame(ids)), ["a", "b"]
        )

    def rows_of(self, source: str) -> DataFrame:
        """Return the rows of a source or named frame: `a`, `b` and `content`."""
        return self._contents(self._node_of(source), source)

    def _contents(self, node: Node, source: str) -> DataFrame:
        built = interpret(node, self._over(PointersCapture(contents=True)), check=False)
        assert isinstance(built.annotation, Pointers)
        slot = [each.target for each in built.annotation.slots].index(source)
        return built.df.selectExpr(f"{ID_A} AS a", f"{ID_B} AS b", f"{carried(slot)} AS content")

    def _node_of(self, name: str) -> Node:
        return next(
            each
            for each in self._nodes.values()
            if isinstance(each.operator, (Source, Named)) and each.operator.label == name
        )
