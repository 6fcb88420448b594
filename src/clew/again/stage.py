"""The trailing stage: turn the pointers of committed batches into edges, each exactly once.

A batch of a query with pointers is committed with its rows and their pointers, and no edges. This
stage takes the batches that are not unfolded yet, all at once, and commits their edges under a name
that holds the first and the last of them. What was left behind by a stage that died has a name
without a commit, and is removed by the next. One stage at a time works for a query: a lock in the
store sees to it, across processes.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import functions as F

from clew.again.carried import once, repeating
from clew.again.cover import covers, span_columns
from clew.again.held import Held
from clew.again.known import recall
from clew.again.levels import SINK_A, SINK_B, Unfolding, pointers_of
from clew.again.points import expire, held_up_to, pointed_sources
from clew.again.reach import is_stateful, makes_rows_of_nothing, reach
from clew.again.tables import as_tables
from clew.again.uncomputed import change_of, drop_notes, note_gap
from clew.again.which_pipeline import Versions
from clew.capture.kinds import kind_of
from clew.capture.pointers import Pointers
from clew.exceptions import OtherVersionError, ReplayError, SourceChangedError
from clew.expiry.bound import last_part
from clew.model import EdgesCome
from clew.operators.named import Named
from clew.plan.columns import named
from clew.plan.node import with_secret
from clew.sources.arrivals import kept_offsets, noted_tables, read_arrivals
from clew.steps import reached
from clew.store.collect import compute, put_rows
from clew.store.commit import Unfolded, commit_unfolded, store_secret, stored_mask
from clew.store.draft import (
    Draft,
    ends_of,
    merge_folders,
    missing,
    rows_in,
    split_draft,
    split_ends,
)
from clew.store.layout import (
    ROWS,
    batches_folder,
    edges_folder,
    parse_batch_folder,
    parse_unfolding_folder,
    point_folder,
    rows_folder,
    unfolded_folder,
    unfolding_folder,
)
from clew.store.lock import alone
from clew.store.packed import pack_folder
from clew.store.pruned import clear_unfolded
from clew.store.said import read_commit

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from clew.again.cover import Cover
    from clew.again.levels import Found
    from clew.again.tables import Tables
    from clew.plan.node import Node
    from clew.sources.arrivals import Arrivals

_MOST_ROWS = 2_000_000
_SMALL = 1_000_000
_FEW_ROWS, _FEW_EDGES = 20_000, 200_000


@dataclass(frozen=True, slots=True)
class Pending:
    """A committed batch whose rows still point, or only cover.

    Attributes:
        number: The batch.
        rows: How many rows it has.
        files: Their files.
        version: The version of the query that it ran with.
    """

    number: int
    rows: int
    files: tuple[str, ...]
    version: str | None = None


@dataclass(frozen=True, slots=True)
class Progress:
    """How far an unfolding has come."""

    batches: int
    of: int
    rows: int
    edges: int
    seconds: float


@dataclass(frozen=True, slots=True)
class _Place:
    """Where edges go to.

    Attributes:
        sink: The frame whose rows they lead from.
        edges: The folder for the edges.
        rows: The folder for the source rows; None if another set of edges brings them.
    """

    sink: str
    edges: Path
    rows: Path | None = None


class Stage:
    """Unfolds what a query committed.

    Args:
        root: The store.
        writer: The query's stream.
        run: The run whose batches are unfolded.
        node: The query's graph.
        checkpoint: The query's checkpoint; None for a batch query.
        most_rows: How many rows are unfolded at once, at least one batch.
        versions: Finds the pipeline that a batch ran with; by default the graph that is given
            serves the batches that ran with it.
    """

    def __init__(
        self,
        root: Path,
        writer: str,
        run: str,
        node: Node,
        checkpoint: str | None,
        most_rows: int = _MOST_ROWS,
        versions: Versions | None = None,
    ) -> None:
        self.root = root
        self.writer = writer
        self.run = run
        node = with_secret(node, store_secret(root), stored_mask(root, writer))
        self.node = node
        self._checkpoint = checkpoint
        self._most_rows = most_rows
        self._annotation = _annotation(root, writer, node)
        self._reach = reach(node, whole=False)
        self._has_points = bool(pointed_sources(node))
        # Asking Spark for the bounds of a join takes a while, and only points need them.
        self._life = last_part(node) if self._has_points else None
        self._named = frozenset(
            n.operator.label for n in node.walk() if isinstance(n.operator, Named)
        )
        self._repeating = repeating(node)
        self._had_few = True
        self._versions = versions or Versions(root, writer, node)
        self._others: list[Stage] = []

    def is_due(self) -> bool:
        """Tell whether batches are pending, or connection points have to be looked after."""
        return self._has_points or bool(self.pending())

    def advance(self) -> int:
        """Unfold everything that is pending, and return the number of edges written."""
        return self.unfold()

    @property
    def _pointers(self) -> list[str]:
        return [c for c in self._annotation.columns if c.startswith("_clew_p")]

    @property
    def spark(self) -> SparkSession:
        """The session of the query."""
        return self.node.plain.df.sparkSession

    def pending(self) -> list[Pending]:
        """List the batches that are committed and not unfolded, oldest first."""
        covered = self._covered()
        found = []
        for path in sorted(batches_folder(self.root, self.writer).glob("*.json")):
            name = parse_batch_folder(path.stem)
            if name is None or name[0] != self.run or any(name[1] in each for each in covered):
                continue
            said = read_commit(path)
            is_behind = kind_of(said.get("capture")).edges_come is EdgesCome.BEHIND_IT
            if is_behind and said.get("sink_rows") and not said.get("gap"):
                files = tuple(f for f in said["files"] if f.startswith(ROWS))
                rows, version = int(said["sink_rows"]), said.get("version")
                found.append(Pending(name[1], rows, files, version))
        return found

    def _covered(self) -> list[range]:
        covered: list[range] = []
        for path in unfolded_folder(self.root, self.writer).glob("*.json"):
            name = parse_unfolding_folder(path.stem)
            if name is not None and name[0] == self.run and isinstance(name[2], int):
                covered.append(range(name[1], name[2] + 1))
        return covered

    def unfold(self, progress: Callable[[Progress], None] | None = None) -> int:
        """Unfold everything that is pending, and return the number of edges written."""
        began, edges, done = time.monotonic(), 0, 0
        with alone(unfolded_folder(self.root, self.writer)):
            clear_unfolded(self.root, self.writer)
            waiting = self._ready(self.pending())
            total = len(waiting)
            spoilt = self._versions.over_a_change(self.run)
            while waiting:
                group = _group(waiting, self._most_rows, spoilt)
                waiting = waiting[len(group) :]
                if group[0].number in spoilt:
                    for each in group:
                        self._note_gap(each.number, spoilt[each.number])
                else:
                    edges += self._unfold_as_run(group)
                done += len(group)
                if progress is not None:
                    rows = sum(each.rows for each in group)
                    progress(Progress(done, total, rows, edges, time.monotonic() - began))
            self._expire()
        return edges

    def _unfold_as_run(self, group: Sequence[Pending]) -> int:
        """Unfold batches with the pipeline that they ran with, or say why that cannot be done."""
        version = group[0].version
        try:
            stage = self._as_run(version)
        except ReplayError as error:
            change = change_of(error)
        else:
            try:
                return stage.unfold_intact(group)
            except OtherVersionError as error:
                change = error.change
            except ReplayError as error:
                if version == self._versions.newest:
                    raise
                change = change_of(error)  # what is past does not keep the present waiting
        clear_unfolded(self.root, self.writer)
        for each in group:
            self._note_gap(each.number, change)
        return 0

    def _as_run(self, version: str | None) -> Stage:
        """Return the stage with the pipeline of a version, in a session with its settings."""
        node = self._versions.node_of(version)
        for known in (self, *self._others):
            if known.node is node:
                return known
        at = (self.root, self.writer, self.run, node, self._checkpoint, self._most_rows)
        self._others.append(Stage(*at, versions=self._versions))
        return self._others[-1]

    def unfold_intact(self, group: Sequence[Pending]) -> int:
        """Unfold batches; where a source has changed, apart, with a gap where it has to be."""
        try:
            edges = self._unfold(group)
        except SourceChangedError as error:
            clear_unfolded(self.root, self.writer)
            if len(group) > 1:
                middle = len(group) // 2
                return sum(map(self.unfold_intact, (group[:middle], group[middle:])))
            self._note_gap(group[0].number, error.change)
            return 0
        self._drop_notes(group)
        return edges

    def _note_gap(self, batch: int, change: str) -> None:
        """Say why a batch has no edges; it stays pending, since the source may be put back."""
        note_gap(self.root, self.writer, self.run, batch, change)

    def _drop_notes(self, group: Sequence[Pending]) -> None:
        drop_notes(self.root, self.writer, self.run, [each.number for each in group])

    def _unfold(self, group: Sequence[Pending]) -> int:
        first, last = group[0].number, group[-1].number
        reached("unfolding begun", last)
        table = self._read(group)
        name = unfolding_folder(self.run, first, last)
        tables = self._tables(covers([table], self._reach), first, last)
        unfolding = Unfolding(tables)
        try:
            found = self._follow(unfolding, self._rows(table, group), table.num_rows)
            edges, files = self._write(unfolding, found, name, table)
            tables.refuse_changed()
            self._versions.refuse_other_settings(self.node, group[0].version)
        except SourceChangedError:
            raise
        except Exception:
            tables.refuse_changed()  # which explains more than what it led to
            raise
        finally:
            unfolding.close()
        reached("unfolding written", last)
        done = Unfolded(self.writer, self.run, first, last, None, edges, files)
        commit_unfolded(self.root, replace(done, version=group[0].version))
        reached("unfolding committed", last)
        return edges

    def _read(self, group: Sequence[Pending]) -> pa.Table:
        """Read the ids, the pointers and the spans of sink rows."""
        files = self._files(group)
        columns = ["a", "b", *self._pointers, *span_columns(files[0])]
        read = [pq.read_table(f, columns=columns, partitioning=None) for f in files]
        return pa.concat_tables(read)

    def _rows(self, table: pa.Table, group: Sequence[Pending]) -> DataFrame:
        """Hand sink rows with their pointers to Spark; few of them need no job to be read."""
        wanted = table.select(["a", "b", *self._pointers])
        # Numbers that may be missing would pass through floating point on their way to Spark.
        if table.num_rows <= _FEW_ROWS and not any(c.null_count for c in wanted.columns):
            return self.spark.createDataFrame(wanted)
        kind = ", ".join(f"{c} bigint" for c in wanted.column_names)
        return self.spark.read.schema(kind).parquet(*[str(f) for f in self._files(group)])

    def _files(self, group: Sequence[Pending]) -> list[Path]:
        return [self.root / file for each in group for file in each.files]

    def _ready(self, waiting: list[Pending]) -> list[Pending]:
        """Leave out batches whose rows a connection point has not taken in yet."""
        if not self._has_points or not waiting:
            return waiting
        last = held_up_to(
            self.spark, self.node, self.root, self.writer, str(self._checkpoint), self._arrivals()
        )
        return [each for each in waiting if last is not None and each.number <= last]

    def _expire(self) -> None:
        """Let connection points forget what can contribute to nothing more."""
        if not self._has_points or self._life is None:
            return
        waiting = [each.number for each in self.pending()]
        batches = self._arrivals().batches
        done = [n for n in batches if n < min(waiting, default=max(batches, default=0) + 1)]
        if done:
            watermark = batches[max(done)].watermark_ms
            expire(self.node, self.root, self.writer, watermark * 1000 - self._life)

    def _arrivals(self) -> Arrivals:
        kept = kept_offsets(self.root, self.writer, self.run)
        return read_arrivals(self.spark, str(self._checkpoint), kept)

    def _point(self, source: str) -> Path:
        return point_folder(self.root, self.writer, source)

    def _tables(self, covers: Mapping[str, Cover], first: int, last: int) -> Tables:
        held = Held(noted_tables(self.root, self.writer, self.run), range(first, last + 1))
        if self._checkpoint is None:
            return as_tables(self.node, covers, held=held)
        # Without state, what a batch emits comes from what the same batch read.
        since = 0 if any(is_stateful(each) for each in self.node.walk()) else first
        return as_tables(self.node, covers, self._arrivals(), last, self._point, since, held)

    def _follow(self, unfolding: Unfolding, rows: DataFrame, count: int) -> list[Found]:
        wanted = rows.selectExpr(f"a AS {SINK_A}", f"b AS {SINK_B}", *self._pointers)
        return unfolding.follow(wanted, self._annotation, count)

    def _write(
        self, unfolding: Unfolding, found: list[Found], name: str, sink_rows: pa.Table
    ) -> tuple[int, list[str]]:
        """Compute the edges once, with the rows at their ends, and lay both out."""
        edges_to = edges_folder(self.root, self.writer, name)
        outs, total = [edges_to], 0
        drafts = []
        for number, each in enumerate(found):
            folder = edges_to / f"_draft-{number}"
            drafts.append(self._compute(each.edges, folder, sink_rows.num_rows))
            reached("unfolded edges computed", number)
        self._check_whole(drafts, sink_rows)
        for each, draft in zip(found, drafts, strict=True):
            if each.source in self._named:
                total += self._unfold_named(unfolding, each.source, draft)
        for number, (each, draft) in enumerate(zip(found, drafts, strict=True)):
            out = rows_folder(self.root, self.writer, name, each.source)
            place = _Place(self.writer, edges_to / f"edges-{number}", out)
            total += self._lay_out(unfolding, each, draft, place)
            reached("unfolded edges laid out", number)
            draft.drop()
            outs.append(out)
            reached("unfolded rows written", number)
        merge_folders(edges_to)
        pack_folder(edges_to)
        reached("unfolded edges packed", len(found))
        return total, [
            str(p.relative_to(self.root)) for out in outs for p in sorted(out.glob("*.parquet"))
        ]

    def _unfold_named(self, unfolding: Unfolding, frame: str, draft: Draft) -> int:
        """Write the edges of those rows of a named frame that results came from.

        Their source rows are behind the results as well, so those are written with these.
        """
        ids, total = ends_of(draft), 0
        rows = self.spark.createDataFrame(ids)
        for number, each in enumerate(unfolding.follow_named(frame, rows, ids.num_rows)):
            folder = draft.folder.with_name(f"{draft.folder.name}-{number}")
            inner = self._compute(each.edges, folder, ids.num_rows)
            place = _Place(frame, folder.with_name(f"edges{folder.name}"))
            total += self._lay_out(unfolding, each, inner, place)
            inner.drop()
        return total

    def _compute(self, edges: DataFrame, folder: Path, rows: int) -> Draft:
        """Compute edges, through the driver if there are few rows and the last had few edges."""
        few = rows <= _FEW_ROWS and self._had_few
        draft = compute(edges, folder, _FEW_EDGES if few else 0)
        self._had_few = draft.count() <= _FEW_EDGES
        return draft

    def _check_whole(self, drafts: Sequence[Draft], sink_rows: pa.Table) -> None:
        """Refuse to commit if a row of a stream lost its source rows."""
        if self._checkpoint is None and makes_rows_of_nothing(self.node):
            return
        found = (part for draft in drafts for part in draft.parts([SINK_A, SINK_B]))
        rows, lost = missing(sink_rows.select(["a", "b"]), found)
        if lost:
            msg = (
                f"{lost} of {rows} rows of `{self.writer}` could not be unfolded: the source "
                "no longer holds the rows that the query read, or the pipeline is another one.\n\n"
                "Check that the source files are still at the path where the query read them. "
                "Nothing was written; the rows stay pending."
            )
            raise ReplayError(msg)

    def _lay_out(self, unfolding: Unfolding, found: Found, draft: Draft, place: _Place) -> int:
        """Write the edges of a draft and, where there is a folder for them, the rows behind."""
        if draft.count() > _SMALL:
            return self._lay_out_many(unfolding, found, draft, place)
        if found.has_content and place.rows is not None:
            apart = found.source in self._repeating
            return split_draft(
                draft, place.sink, found.source, place.edges, place.rows, apart=apart
            )
        total, ids = split_ends(draft, place.sink, found.source, place.edges)
        if place.rows is None:
            return total
        contents = unfolding.rows_with(found.source, ids)
        put_rows(_apart(contents), place.rows, few=ids.num_rows <= _FEW_EDGES)
        return total

    def _lay_out_many(self, unfolding: Unfolding, found: Found, draft: Draft, place: _Place) -> int:
        held = self.spark.read.parquet(str(draft.folder))
        if found.repeats:
            held = held.dropDuplicates([SINK_A, SINK_B, "source_a", "source_b"])
        ends = ["source_a", "source_b"]
        named_edges = held.select(
            F.lit(place.sink).alias("sink"),
            SINK_A,
            SINK_B,
            F.lit(found.source).alias("source"),
            *ends,
        )
        ordered = named_edges.coalesce(2).sortWithinPartitions(SINK_A, SINK_B, *ends)
        ordered.write.mode("overwrite").parquet(str(place.edges))
        if place.rows is None:
            return rows_in(place.edges)
        ids = [named("source_a").alias("a"), named("source_b").alias("b")]
        if found.has_content:
            contents = held.select(*ids, "content")
            row, apart = F.col("content.row"), found.source in self._repeating
            contents = once(contents, ["a", "b"], row, apart=apart)
        else:
            wanted = held.select(*ids).dropDuplicates()
            contents = unfolding.rows_of(found.source).join(wanted, ["a", "b"])
        _apart(contents).coalesce(2).write.mode("overwrite").parquet(str(place.rows))
        return rows_in(place.edges)


def _apart(contents: DataFrame) -> DataFrame:
    """Return source rows in the form that the store keeps them in."""
    return contents.select("a", "b", "content.segment", "content.time", "content.row")


def _annotation(root: Path, writer: str, node: Node) -> Pointers:
    """Say what the rows of a query carry; the process that runs the query knows already."""
    known = recall(root, writer)
    if known is not None and known.node is node and isinstance(known.annotation, Pointers):
        return known.annotation
    return pointers_of(node)


def _group(
    waiting: Sequence[Pending], most_rows: int, spoilt: Container[int] = ()
) -> list[Pending]:
    """Take as many batches as can be unfolded at once: those that ran with one version."""
    group: list[Pending] = []
    rows = 0
    for each in waiting:
        if group and rows + each.rows > most_rows:
            break
        alike = (each.version, each.number in spoilt)
        if group and alike != (group[0].version, group[0].number in spoilt):
            break
        group.append(each)
        rows += each.rows
    return group
