"""Put one batch of a job's reduced edges into the store.

Edges come as pairs of identifiers. Few of them are laid out in memory with Arrow; many stay with
Spark, which tells them apart by their ids and never by their text. The commit file comes last, and
a batch that was not committed is written anew from the start.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from clew.exceptions import StoreError
from clew.prov.jobs import describe_job, run_name
from clew.steps import reached
from clew.store.commit import Commit, commit, is_committed
from clew.store.draft import put_table, rows_in
from clew.store.entity import COLUMN, ENTITIES, entity_ids, id_sql
from clew.store.layout import batch_folder, edges_folder, rows_folder, store_root

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame

    from clew.model import Exactness

MAX_IN_MEMORY = 200_000
"""So many edges of a DataFrame come to the driver; more are written by Spark."""

_ENDS = ("output", "input")


def put_reduced(
    root: str | os.PathLike[str],
    job: str,
    run: str,
    batch: int,
    edges: DataFrame | pa.Table,
    *,
    exactness: Exactness = "exact",
) -> None:
    """Keep a batch of reduced edges of a job, for good.

    A batch is known by job, run and number. If it was committed before, nothing happens; if it was
    interrupted, it is written again. Numbers without a batch are gaps, so a batch without edges is
    put as well.

    Args:
        root: The store; it is made if it is not there.
        job: The job; it gets a stream of that name.
        run: Which run of the job this is: any text that stays the same after a restart.
        batch: The number of the batch in the run, from 0.
        edges: Columns `output` and `input`, identifiers of entities: the output was derived from
            the input. A pair may be there several times; pairs with a null are left out.
        exactness: How the edges relate to what the job really did; answers say it.

    Raises:
        StoreError: The edges have other columns, or the store cannot be written.
        StoreConflictError: The store has a stream of that name that is no job.

    Examples:
        >>> edges = pa.table({"output": ["tag/a"], "input": ["tweet/1"]})
        >>> put_reduced("prov/", "hashtags", "monday", 0, edges)  # doctest: +SKIP
    """
    place, name = store_root(root), run_name(run)
    _check(edges.column_names if isinstance(edges, pa.Table) else edges.columns, batch)
    describe_job(place, job, name, exactness)
    if is_committed(place, job, name, batch):
        return
    folders = _Folders(place, job, batch_folder(name, batch))
    folders.clear()
    table = edges if isinstance(edges, pa.Table) else _put_frame(edges, folders, batch)
    if table is not None:
        _put_table(table, folders, batch)
    done = Commit(
        writer=job,
        run=name,
        batch=batch,
        sink_rows=rows_in(folders.outputs),
        edges=rows_in(folders.edges),
        files=folders.files(),
    )
    reached("reduced written", batch)
    commit(place, done)
    reached("reduced committed", batch)


class _Folders:
    """Where a batch goes: its edges, the outputs, and the inputs."""

    def __init__(self, root: Path, job: str, batch: str) -> None:
        self.root = root
        self.job = job
        self.edges = edges_folder(root, job, batch)
        self.outputs = rows_folder(root, job, batch, job)
        self.inputs = rows_folder(root, job, batch, ENTITIES)

    def clear(self) -> None:
        """Take away what an interrupted attempt has left."""
        for folder in (self.edges, self.outputs, self.inputs):
            shutil.rmtree(folder, ignore_errors=True)

    def files(self) -> list[str]:
        """List the batch's Parquet files, relative to the store."""
        folders = (self.edges, self.outputs, self.inputs)
        return [
            str(p.relative_to(self.root))
            for each in folders
            for p in sorted(each.glob("*.parquet"))
        ]


def _check(columns: Sequence[str], batch: int) -> None:
    if not set(_ENDS) <= set(columns):
        have = ", ".join(f"`{each}`" for each in columns) or "none"
        msg = (
            f"reduced edges need the columns `output` and `input`; got {have}.\n\n"
            'Rename them, e.g. `edges.withColumnsRenamed({"made": "output", "used": "input"})`.'
        )
        raise StoreError(msg)
    if batch < 0:
        msg = f"batches of a run are numbered from 0; got {batch}."
        raise StoreError(msg)


def _put_table(edges: pa.Table, folders: _Folders, batch: int) -> None:
    pairs = edges.select(_ENDS).cast(pa.schema([(name, pa.string()) for name in _ENDS]))
    pairs = pairs.drop_null().group_by(list(_ENDS)).aggregate([])
    if not pairs.num_rows:
        return
    known = pa.chunked_array([*pairs.column("output").chunks, *pairs.column("input").chunks])
    names = known.unique()
    a, b = entity_ids(names)
    ends = [pc.index_in(pairs.column(end), value_set=names) for end in _ENDS]
    halves = [pa.array(half).take(end) for end in ends for half in (a, b)]
    table = pa.table(
        {
            "sink": pa.repeat(folders.job, pairs.num_rows),
            "sink_a": halves[0],
            "sink_b": halves[1],
            "source": pa.repeat(ENTITIES, pairs.num_rows),
            "source_a": halves[2],
            "source_b": halves[3],
        }
    )
    put_table(table.sort_by([(name, "ascending") for name in table.column_names]), folders.edges)
    reached("reduced edges written", batch)
    for end, folder in zip(ends, (folders.outputs, folders.inputs), strict=True):
        places = end.unique()
        _put_rows(names.take(places), a[places.to_numpy()], b[places.to_numpy()], folder)


def _put_rows(names: pa.Array, a: object, b: object, folder: Path) -> None:
    count = len(names)
    rows = {
        "a": pa.array(a, pa.int64()),
        "b": pa.array(b, pa.int64()),
        "segment": pa.nulls(count, pa.string()),
        "time": pa.nulls(count, pa.timestamp("us", tz="UTC")),
        "row": pa.StructArray.from_arrays([names], [COLUMN]),
    }
    put_table(pa.table(rows).sort_by([("a", "ascending"), ("b", "ascending")]), folder)


def _put_frame(edges: DataFrame, folders: _Folders, batch: int) -> pa.Table | None:
    """Write the edges of a DataFrame with Spark; return them instead if they are few."""
    pairs = edges.selectExpr(*[f"CAST({end} AS STRING) AS {end}" for end in _ENDS]).na.drop()
    # They are counted first and then read for edges, outputs and inputs: computed once is enough.
    ours = None if edges.storageLevel.useMemory or edges.storageLevel.useDisk else pairs.persist()
    try:
        if pairs.count() <= MAX_IN_MEMORY:
            return pairs.toArrow()
        _write(_edges(pairs, folders.job), folders.edges)
        reached("reduced edges written", batch)
        for end, folder in zip(_ENDS, (folders.outputs, folders.inputs), strict=True):
            _write(_rows(pairs, end), folder)
    finally:
        if ours is not None:
            ours.unpersist()
    return None


def _write(rows: DataFrame, folder: Path) -> None:
    rows.write.mode("overwrite").parquet(str(folder))


def _edges(pairs: DataFrame, job: str) -> DataFrame:
    from pyspark.sql import functions as F

    sink, source = (id_sql(end) for end in _ENDS)
    ids = pairs.selectExpr(
        f"{sink[0]} AS sink_a",
        f"{sink[1]} AS sink_b",
        f"{source[0]} AS source_a",
        f"{source[1]} AS source_b",
    ).distinct()
    # In order, a reader skips most row groups when it looks for a few results.
    return ids.sortWithinPartitions("sink_a", "sink_b").select(
        F.lit(job).alias("sink"),
        "sink_a",
        "sink_b",
        F.lit(ENTITIES).alias("source"),
        "source_a",
        "source_b",
    )


def _rows(pairs: DataFrame, end: str) -> DataFrame:
    a, b = id_sql(end)
    return (
        pairs.select(end)
        .distinct()
        .selectExpr(
            f"{a} AS a",
            f"{b} AS b",
            "CAST(NULL AS STRING) AS segment",
            "CAST(NULL AS TIMESTAMP) AS `time`",
            f"struct({end} AS {COLUMN}) AS `row`",
        )
        .sortWithinPartitions("a", "b")
    )
