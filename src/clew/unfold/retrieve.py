"""Provenance for some results only, computed when somebody asks.

The rows are chosen by a condition, by their ids, as a sample or as the first ones; nothing is done
for the others. Rows with pointers are unfolded, rows with intervals are replayed. What was found is
kept in the store as an unfolding of its own, so the next question about these rows costs nothing.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from clew.capture.intervals import HIGH, LOW
from clew.graph.columns import named
from clew.store.commit import Unfolded, commit_unfolded, rows_in
from clew.store.layout import (
    batches_folder,
    edges_folder,
    parse_batch_folder,
    read_json,
    rows_folder,
    unfolded_folder,
    unfolding_folder,
)
from clew.unfold.arrivals import kept_offsets, read_arrivals
from clew.unfold.carried import edges_of, source_rows, sources_of
from clew.unfold.replay import MOST_NARROWED, Wanted, replay
from clew.unfold.stage import Stage, alone
from clew.unfold.tables import Span

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame

    from clew.graph.node import Node

_A_ROUND = 20_000


@dataclass(frozen=True, slots=True)
class Selection:
    """Which results to find provenance for.

    Attributes:
        where: A condition over the result's columns, in Spark's SQL.
        ids: These rows.
        first: At most so many rows, the oldest batches first.
        sample: A share of the rows, chosen by their ids, so always the same.
    """

    where: str | None = None
    ids: Sequence[tuple[int, int]] | None = None
    first: int | None = None
    sample: float | None = None


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
        if name and batch.get("capture", "sets") != "sets" and batch["files"]:
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
    spark = node.plain.df.sparkSession
    done = 0
    for run in runs_of(root, stream):
        if run.capture == "pointers":
            # All pending rows take hardly longer than one, and need no second time.
            Stage(root, stream, run.run, node, run.checkpoint).unfold()
            continue
        with alone(unfolded_folder(root, stream)):
            rows = spark.read.parquet(*[str(root / f) for f in run.files])
            rows = _without(rows, _known(root, stream, run.run))
            chosen = _chosen(rows, selection).persist()
            try:
                total = chosen.count()
                for part in _rounds(chosen, total):
                    done += _replayed(root, stream, node, run, part)
                    if progress is not None:
                        progress(done, total)
            finally:
                chosen.unpersist()
    return done


def _chosen(rows: DataFrame, selection: Selection) -> DataFrame:
    if selection.ids is not None:
        ids = rows.sparkSession.createDataFrame(
            sorted(set(selection.ids)), "_clew_w_a bigint, _clew_w_b bigint"
        )
        same = (F.col("a") == F.col("_clew_w_a")) & (F.col("b") == F.col("_clew_w_b"))
        rows = rows.join(F.broadcast(ids), same, "semi")
    if selection.where is not None:
        wide = rows.select("row.*", *[named(c) for c in rows.columns])
        rows = wide.filter(selection.where).select(*[named(c) for c in rows.columns])
    if selection.sample is not None:
        share = int(selection.sample * (1 << 30))
        rows = rows.filter(F.pmod(F.xxhash64("a", "b"), F.lit(1 << 30)) < share)
    if selection.first is not None:
        rows = rows.orderBy(F.col("_metadata.file_path"), "a", "b").limit(selection.first)
    return rows


def _rounds(chosen: DataFrame, total: int) -> Iterable[DataFrame]:
    """Cut the rows into parts that can be replayed at once, near in time."""
    if total == 0:
        return
    parts = -(-total // _A_ROUND)
    if parts == 1:
        yield chosen
        return
    lows = [c for c in chosen.columns if c.startswith(LOW)]
    order = named(lows[0]) if lows else F.col("a")
    placed = chosen.withColumn("_clew_part", F.ntile(parts).over(_ordered(order))).persist()
    try:
        for part in range(1, parts + 1):
            yield placed.filter(F.col("_clew_part") == part).drop("_clew_part")
    finally:
        placed.unpersist()


def _ordered(column: Any) -> Any:
    from pyspark.sql import Window

    return Window.orderBy(column)


def _without(rows: DataFrame, known: DataFrame | None) -> DataFrame:
    return rows if known is None else rows.join(known, ["a", "b"], "anti")


def _known(root: Path, stream: str, run: str) -> DataFrame | None:
    """Return the ids of rows that were looked up before."""
    from pyspark.sql import SparkSession

    parts = [read_json(p) for p in unfolded_folder(root, stream).glob(f"{run}-*.json")]
    files = [str(root / f) for p in parts if p["part"] for f in p["files"] if f.startswith("edges")]
    spark = SparkSession.getActiveSession()
    if not files or spark is None:
        return None
    edges = spark.read.parquet(*files).select(
        F.col("sink_a").alias("a"), F.col("sink_b").alias("b")
    )
    return edges.distinct()


def _replayed(root: Path, stream: str, node: Node, run: Run, chosen: DataFrame) -> int:
    wanted = _wanted(chosen)
    arrivals = None
    if run.checkpoint is not None:
        spark = node.plain.df.sparkSession
        arrivals = read_arrivals(spark, run.checkpoint, kept_offsets(root, stream, run.run))
    rows = replay(node, wanted, arrivals, run.last if arrivals else None)
    try:
        _keep(root, stream, run, rows)
    finally:
        rows.unpersist()
    return wanted.count


def _wanted(chosen: DataFrame) -> Wanted:
    timed = [c for c in chosen.columns if c.startswith(LOW)]
    highs = [HIGH + c.removeprefix(LOW) for c in timed]
    ends = [F.min(named(c)).alias(c) for c in timed] + [F.max(named(c)).alias(c) for c in highs]
    summary = chosen.agg(F.count(F.lit(1)).alias("n"), *ends).first()
    assert summary is not None
    spans = {
        c.removeprefix(LOW): Span(summary[c], summary[h])
        for c, h in zip(timed, highs, strict=True)
        if summary[c] is not None
    }
    count = int(summary["n"])
    values = []
    if count <= MOST_NARROWED:
        values = [each["row"].asDict(recursive=True) for each in chosen.select("row").collect()]
    return Wanted(chosen.select("a", "b"), count, spans, values)


def _keep(root: Path, stream: str, run: Run, rows: DataFrame) -> None:
    part = uuid.uuid4().hex[:8]
    name = unfolding_folder(run.run, run.first, part)
    streams = sources_of(rows)
    edges_to = edges_folder(root, stream, name)
    edges_of(rows, stream, streams).coalesce(1).write.parquet(str(edges_to))
    outs = [edges_to]
    for each in streams:
        out = rows_folder(root, stream, name, each)
        source_rows(rows, each).coalesce(1).write.parquet(str(out))
        outs.append(out)
    files = [str(p.relative_to(root)) for out in outs for p in sorted(out.glob("*.parquet"))]
    done = Unfolded(stream, run.run, run.first, run.last, part, rows_in(edges_to), files)
    commit_unfolded(root, done)
