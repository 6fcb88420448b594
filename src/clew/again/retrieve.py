"""Provenance for some results only, computed when somebody asks.

The rows are chosen by a condition, by their ids, as a sample or as the first ones; nothing is done
for the others. Rows with pointers are unfolded, rows with intervals are replayed. What was found is
kept in the store as an unfolding of its own, so the next question about these rows costs nothing.
"""

from __future__ import annotations

import shutil
import uuid
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from clew.again.around import around, with_spans
from clew.again.by_key import chosen_by_key
from clew.again.carried import edges_of, repeating, source_rows, sources_of
from clew.again.cover import covers
from clew.again.held import Held
from clew.again.reach import reach
from clew.again.replay import MOST_NARROWED, Wanted, replay
from clew.again.selection import Selection, choose_rows, values_of
from clew.again.stage import Stage
from clew.again.uncomputed import drop_notes, note_gap
from clew.capture.intervals import LOW
from clew.capture.kinds import kind_of
from clew.capture.sets import FROM
from clew.exceptions import OtherVersionError
from clew.model import EdgesCome
from clew.plan.node import mask_of
from clew.sources.arrivals import kept_offsets, noted_tables, read_arrivals
from clew.store.commit import Unfolded, commit_unfolded, read_stream
from clew.store.draft import ids_in, put_table, rows_in, split_carried
from clew.store.inside import refuse_links
from clew.store.layout import (
    batches_folder,
    edges_folder,
    parse_batch_folder,
    rows_folder,
    unfolded_folder,
    unfolding_folder,
)
from clew.store.lock import alone
from clew.store.packed import pack_folder
from clew.store.pruned import clear_unfolded
from clew.store.said import read_commit, read_unfolding

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from pathlib import Path

    import pyarrow as pa
    from pyspark.sql import SparkSession

    from clew.again.which_pipeline import Versions
    from clew.capture.kinds import CaptureKind
    from clew.plan.node import Node

__all__ = ["Run", "Selection", "retrieve", "runs_of"]

_A_ROUND = 20_000
_SMALL = 1_000_000


@dataclass(frozen=True, slots=True)
class _Kept:
    """A batch: its files, what its rows carry, its version, why it cannot be computed again."""

    number: int
    files: tuple[str, ...]
    capture: CaptureKind
    version: str | None
    why: str | None

    def is_like(self, other: _Kept) -> bool:
        return (self.capture, self.version, self.why) == (other.capture, other.version, other.why)


@dataclass(frozen=True, slots=True)
class Run:
    """Committed rows of one run of a query, all made by one version of it.

    Attributes:
        run: The run.
        checkpoint: The query's checkpoint; None for a batch query.
        capture: What the rows carry.
        version: The version of the query.
        batches: The files with the rows of each batch, oldest first.
        why: Why the rows cannot be computed again, though the version may be at hand.
    """

    run: str
    checkpoint: str | None
    capture: CaptureKind
    version: str | None = None
    batches: tuple[tuple[int, tuple[str, ...]], ...] = field(default=(), repr=False)
    why: str | None = None

    @property
    def first(self) -> int:
        """The first batch."""
        return self.batches[0][0]

    @property
    def last(self) -> int:
        """The last batch."""
        return self.batches[-1][0]

    @property
    def files(self) -> tuple[str, ...]:
        """The files with the rows of all batches."""
        return tuple(file for _, files in self.batches for file in files)


def runs_of(root: Path, stream: str, versions: Versions) -> list[Run]:
    """List the runs of a query whose rows carry pointers or intervals, by version."""
    said = read_stream(root, stream) or {}
    places = {r["run"]: r.get("checkpoint") for r in said.get("runs", ())}
    found: dict[str, list[_Kept]] = {}
    spoilt: dict[str, dict[int, str]] = {}
    for path in sorted(batches_folder(root, stream).glob("*.json")):
        name = parse_batch_folder(path.stem)
        batch = read_commit(path)
        capture = kind_of(batch.get("capture"))
        is_kept = not batch.get("gap") and (batch["files"] or batch.get("sink_rows") is None)
        if name and capture.reads_again and is_kept:
            run, number = name
            if run not in spoilt:
                spoilt[run] = versions.over_a_change(run)
            version, why = batch.get("version"), spoilt[run].get(number)
            kept = _Kept(number, tuple(batch["files"]), capture, version, why)
            found.setdefault(run, []).append(kept)
    return [
        Run(
            run,
            places.get(run),
            batches[0].capture,
            batches[0].version,
            tuple((each.number, each.files) for each in batches),
            batches[0].why,
        )
        for run, every in found.items()
        for batches in _alike(every, noted_tables(root, stream, run))
    ]


def _alike(
    batches: Sequence[_Kept], noted: Mapping[int, Mapping[str, Any]]
) -> Iterator[list[_Kept]]:
    """Take apart the batches of a run between which the query or tables beside it changed."""
    part: list[_Kept] = []
    for each in batches:
        # Rows that are not kept do not tell their batch, and pointers are unfolded run by run.
        whole = not each.files or each.capture.edges_come is EdgesCome.BEHIND_IT
        moved = part and not whole and noted.get(each.number) != noted.get(part[-1].number)
        if part and (moved or not each.is_like(part[0])):
            yield part
            part = []
        part.append(each)
    if part:
        yield part


def retrieve(
    root: Path,
    stream: str,
    versions: Versions,
    selection: Selection,
    progress: Callable[[int, int], None] | None = None,
) -> int:
    """Find the provenance of chosen rows and keep it in the store.

    Rows that cannot be computed again, because the query was changed, are left as a gap that says
    so.

    Args:
        root: The store.
        stream: The results.
        versions: Finds the pipeline that made them.
        selection: Which of them.
        progress: Called with the number of rows done and of all chosen.

    Returns:
        How many rows were looked up; those known before are not counted.

    Raises:
        ReplayError: The rows cannot be computed again.
        StoreError: The store has links, through which something else would be written or removed.
    """
    refuse_links(root)
    done = 0
    unfolded: set[str] = set()
    runs = runs_of(root, stream, versions)
    for run in runs:
        if run.capture.edges_come is EdgesCome.BEHIND_IT:
            # All pending rows take hardly longer than one, and need no second time.
            if run.run not in unfolded:
                unfolded.add(run.run)
                node = versions.any_node()
                with versions.in_time(node):
                    at = (root, stream, run.run, node, run.checkpoint)
                    Stage(*at, versions=versions).unfold()
            continue
        if not run.files and len({each.version for each in runs if each.run == run.run}) > 1:
            raise _which(root, stream)
        with alone(unfolded_folder(root, stream)):
            clear_unfolded(root, stream)
            left = None if selection.first is None else selection.first - done
            wanted = replace(selection, first=left)
            before = done
            for number, of in _computed(root, stream, versions, run, wanted):
                done += number
                if progress is not None:
                    progress(done, before + of)
    return done


def _computed(
    root: Path, stream: str, versions: Versions, run: Run, selection: Selection
) -> Iterator[tuple[int, int]]:
    """Compute wanted rows of a run; yield how many are done at each step, and of how many."""
    known = _known(root, stream, run.run)
    # Rows that are named need no pipeline to be found, so that of other rows is not asked for.
    if selection.ids is not None and not _has_any(root, run.files, selection, known):
        return
    try:
        if run.why is not None:
            _leave(root, stream, run, run.why, selection, known)
            return
        node = versions.node_of(run.version)
    except OtherVersionError as error:
        if run.version == versions.newest:
            raise
        _leave(root, stream, run, error.change, selection, known)
        return
    if not run.files:
        chosen = chosen_by_key(node, root, stream, selection, known)
    else:
        chosen = choose_rows(node, root, run.files, selection, known)
        if run.capture.spans_from_result:
            chosen = with_spans(chosen, root, run.files, around(node))
    for part in _rounds(chosen):
        with versions.in_time(node):
            number = _replayed(root, stream, versions, node, run, part)
        yield number, chosen.num_rows
    if chosen.num_rows:
        drop_notes(root, stream, run.run, [number for number, _ in run.batches])


def _leave(
    root: Path, stream: str, run: Run, why: str, selection: Selection, known: set[tuple[int, int]]
) -> None:
    """Say of the batches that may have wanted rows why those cannot be computed again."""
    for number, files in run.batches:
        if _has_any(root, files, replace(selection, first=None), known):
            note_gap(root, stream, run.run, number, why)


def _has_any(
    root: Path, files: Sequence[str], selection: Selection, known: set[tuple[int, int]]
) -> bool:
    """Tell whether some files may have rows that are wanted."""
    if not files or selection.where is not None:
        return True
    return bool(choose_rows(None, root, files, selection, known).num_rows)


def _which(root: Path, stream: str) -> OtherVersionError:
    why = (
        "the store keeps keys of the results and not what they hold, so which of the versions that "
        "the query had made a row is not known"
    )
    return OtherVersionError(str(root), stream, None, why)


def _rounds(chosen: pa.Table) -> Iterator[pa.Table]:
    """Cut the rows into parts that can be replayed at once, near in time."""
    lows = [c for c in chosen.column_names if c.startswith(LOW)]
    ordered = chosen.sort_by([(c, "ascending") for c in [*lows[:1], "a", "b"]])
    for start in range(0, ordered.num_rows, _A_ROUND):
        yield ordered.slice(start, _A_ROUND)


def _known(root: Path, stream: str, run: str) -> set[tuple[int, int]]:
    """Return the ids of rows that were looked up before."""
    parts = [read_unfolding(p) for p in unfolded_folder(root, stream).glob(f"{run}-*.json")]
    files = [root / f for p in parts if p["part"] for f in p["files"] if f.startswith("edges")]
    return ids_in(files, "sink_a", "sink_b")


def _replayed(
    root: Path, stream: str, versions: Versions, node: Node, run: Run, chosen: pa.Table
) -> int:
    spark = node.plain.df.sparkSession
    arrivals = None
    if run.checkpoint is not None:
        arrivals = read_arrivals(spark, run.checkpoint, kept_offsets(root, stream, run.run))
    ids = chosen.select(["a", "b"]).group_by(["a", "b"]).aggregate([])
    # Values that are masked are not those of the rows, and narrow to nothing.
    is_narrowed = ids.num_rows <= MOST_NARROWED and not mask_of(node)
    values = values_of(root, run.files, ids) if is_narrowed else []
    wanted = Wanted(ids, covers([chosen], reach(node, whole=True)), values)
    held = Held(noted_tables(root, stream, run.run), range(run.first, run.last + 1))
    part = uuid.uuid4().hex[:8]
    name = unfolding_folder(run.run, run.first, part)
    edges_to = edges_folder(root, stream, name)
    draft = edges_to / "_draft"
    replay(node, wanted, arrivals, run.last if arrivals else None, draft, held)
    versions.refuse_other_settings(node, run.version)
    edges, outs = _lay_out(spark, root, stream, name, draft, repeating(node))
    shutil.rmtree(draft)
    files = [str(p.relative_to(root)) for out in outs for p in sorted(out.glob("*.parquet"))]
    done = Unfolded(stream, run.run, run.first, run.last, part, edges, files)
    commit_unfolded(root, replace(done, version=run.version))
    return int(ids.num_rows)


def _lay_out(
    spark: SparkSession,
    root: Path,
    stream: str,
    name: str,
    draft: Path,
    apart: Collection[str],
) -> tuple[int, list[Path]]:
    """Write edges and contents of what a replay found; return how many edges, and the folders."""
    edges_to = edges_folder(root, stream, name)
    small = split_carried(draft, stream, FROM, _SMALL, apart)
    if small is not None:
        put_table(small.edges, edges_to)
        outs = [edges_to]
        for source, rows in small.rows.items():
            outs.append(rows_folder(root, stream, name, source))
            put_table(rows, outs[-1])
    else:
        rows_found = spark.read.parquet(str(draft))
        streams = sources_of(rows_found)
        written = edges_of(rows_found, stream, streams)
        written.coalesce(1).write.mode("append").parquet(str(edges_to))
        outs = [edges_to]
        for each in streams:
            outs.append(rows_folder(root, stream, name, each))
            source_rows(rows_found, each, apart=each in apart).coalesce(1).write.parquet(
                str(outs[-1])
            )
    count = rows_in(edges_to)
    pack_folder(edges_to)
    return count, outs
