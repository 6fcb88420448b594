"""Provenance for some results only, computed when somebody asks.

The rows are chosen by a condition, by their ids, as a sample or as the first ones; nothing is done
for the others. Rows with pointers are unfolded, rows with intervals are replayed. What was found is
kept in the store as an unfolding of its own, so the next question about these rows costs nothing.
"""

from __future__ import annotations

import shutil
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from clew.capture.intervals import LOW
from clew.capture.sets import FROM
from clew.store.commit import Unfolded, commit_unfolded
from clew.store.draft import ids_in, put_table, rows_in, split_carried
from clew.store.layout import (
    batches_folder,
    edges_folder,
    parse_batch_folder,
    read_json,
    rows_folder,
    unfolded_folder,
    unfolding_folder,
)
from clew.store.lock import alone
from clew.store.packed import pack_folder
from clew.store.pruned import clear_unfolded
from clew.unfold.around import around, with_spans
from clew.unfold.arrivals import kept_offsets, read_arrivals
from clew.unfold.by_key import chosen_by_key
from clew.unfold.carried import edges_of, source_rows, sources_of
from clew.unfold.cover import covers
from clew.unfold.reach import reach
from clew.unfold.replay import MOST_NARROWED, Wanted, replay
from clew.unfold.selection import Selection, choose_rows, values_of
from clew.unfold.stage import Stage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import pyarrow as pa
    from pyspark.sql import SparkSession

    from clew.graph.node import Node

__all__ = ["Run", "Selection", "retrieve", "runs_of"]

_A_ROUND = 20_000
_SMALL = 1_000_000


@dataclass(frozen=True, slots=True)
class Run:
    """The committed rows of one run of a query."""

    run: str
    checkpoint: str | None
    capture: str
    files: tuple[str, ...] = field(default=(), repr=False)
    first: int = 0
    last: int = 0


def runs_of(root: Path, stream: str) -> list[Run]:
    """List the runs of a query whose rows carry pointers or intervals."""
    from clew.store.commit import read_stream

    said = read_stream(root, stream) or {}
    places = {r["run"]: r.get("checkpoint") for r in said.get("runs", ())}
    found: dict[str, list[tuple[int, str, list[str]]]] = {}
    for path in sorted(batches_folder(root, stream).glob("*.json")):
        name = parse_batch_folder(path.stem)
        batch = read_json(path)
        kept = not batch.get("gap") and (batch["files"] or batch["sink_rows"] is None)
        if name and batch.get("capture", "sets") != "sets" and kept:
            found.setdefault(name[0], []).append((name[1], batch["capture"], batch["files"]))
    return [
        Run(
            run,
            places.get(run),
            batches[-1][1],
            tuple(f for _, _, files in batches for f in files),
            batches[0][0],
            batches[-1][0],
        )
        for run, batches in found.items()
    ]


def retrieve(
    root: Path,
    stream: str,
    node: Node,
    selection: Selection,
    progress: Callable[[int, int], None] | None = None,
) -> int:
    """Find the provenance of chosen rows and keep it in the store.

    Args:
        root: The store.
        stream: The results.
        node: The query that made them.
        selection: Which of them.
        progress: Called with the number of rows done and of all chosen.

    Returns:
        How many rows were looked up; those known before are not counted.

    Raises:
        ReplayError: The rows cannot be computed again.
    """
    done = 0
    for run in runs_of(root, stream):
        if run.capture == "pointers":
            # All pending rows take hardly longer than one, and need no second time.
            Stage(root, stream, run.run, node, run.checkpoint).unfold()
            continue
        with alone(unfolded_folder(root, stream)):
            clear_unfolded(root, stream)
            known = _known(root, stream, run.run)
            if not run.files:
                chosen = chosen_by_key(node, root, stream, selection, known)
            else:
                chosen = choose_rows(node, root, run.files, selection, known)
                if run.capture == "keys":
                    chosen = with_spans(chosen, root, run.files, around(node))
            for part in _rounds(chosen):
                done += _replayed(root, stream, node, run, part)
                if progress is not None:
                    progress(done, chosen.num_rows)
    return done


def _rounds(chosen: pa.Table) -> Iterator[pa.Table]:
    """Cut the rows into parts that can be replayed at once, near in time."""
    lows = [c for c in chosen.column_names if c.startswith(LOW)]
    ordered = chosen.sort_by([(c, "ascending") for c in [*lows[:1], "a", "b"]])
    for start in range(0, ordered.num_rows, _A_ROUND):
        yield ordered.slice(start, _A_ROUND)


def _known(root: Path, stream: str, run: str) -> set[tuple[int, int]]:
    """Return the ids of rows that were looked up before."""
    parts = [read_json(p) for p in unfolded_folder(root, stream).glob(f"{run}-*.json")]
    files = [root / f for p in parts if p["part"] for f in p["files"] if f.startswith("edges")]
    return ids_in(files, "sink_a", "sink_b")


def _replayed(root: Path, stream: str, node: Node, run: Run, chosen: pa.Table) -> int:
    spark = node.plain.df.sparkSession
    arrivals = None
    if run.checkpoint is not None:
        arrivals = read_arrivals(spark, run.checkpoint, kept_offsets(root, stream, run.run))
    ids = chosen.select(["a", "b"]).group_by(["a", "b"]).aggregate([])
    values = values_of(root, run.files, ids) if ids.num_rows <= MOST_NARROWED else []
    wanted = Wanted(ids, covers([chosen], reach(node, whole=True)), values)
    part = uuid.uuid4().hex[:8]
    name = unfolding_folder(run.run, run.first, part)
    edges_to = edges_folder(root, stream, name)
    draft = edges_to / "_draft"
    replay(node, wanted, arrivals, run.last if arrivals else None, draft)
    edges, outs = _lay_out(spark, root, stream, name, draft)
    shutil.rmtree(draft)
    files = [str(p.relative_to(root)) for out in outs for p in sorted(out.glob("*.parquet"))]
    commit_unfolded(root, Unfolded(stream, run.run, run.first, run.last, part, edges, files))
    return int(ids.num_rows)


def _lay_out(
    spark: SparkSession, root: Path, stream: str, name: str, draft: Path
) -> tuple[int, list[Path]]:
    """Write edges and contents of what a replay found; return how many edges, and the folders."""
    edges_to = edges_folder(root, stream, name)
    small = split_carried(draft, stream, FROM, _SMALL)
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
            source_rows(rows_found, each).coalesce(1).write.parquet(str(outs[-1]))
    count = rows_in(edges_to)
    pack_folder(edges_to)
    return count, outs
