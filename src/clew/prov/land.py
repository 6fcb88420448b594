"""Where reduced edges go: to the repository, batch by batch.

A batch that comes again, after a crash, follows from the same lines and the same state, so what
the repository has of it already is the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from clew.prov import put_reduced
from clew.prov.put import MAX_IN_MEMORY
from clew.prov.words import FINAL
from clew.store.layout import EDGES, ROWS, batches_folder
from clew.store.said import read_commit

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

    from clew.model import Exactness


def land(
    spark: SparkSession,
    root: Path,
    job: str,
    run: str,
    batch: int,
    files: Sequence[Path],
    exactness: Exactness,
) -> None:
    """Put the reduced edges of a batch into the repository.

    Args:
        spark: The session, for batches that are too large for one process.
        root: The store.
        job: The job.
        run: Eight hex digits that stand for this reduction.
        batch: The number of the batch.
        files: Parquet files with `output` and `input`.
        exactness: How the edges relate to what the job really did.
    """
    if sum(pq.read_metadata(file).num_rows for file in files) > MAX_IN_MEMORY:
        edges = spark.read.parquet(*[str(file) for file in files])
        put_reduced(root, job, run, batch, edges, exactness=exactness)
        return
    tables = [pq.read_table(file, partitioning=None) for file in files]
    put_reduced(root, job, run, batch, pa.concat_tables(tables), exactness=exactness)


def landed_files(root: Path, job: str) -> list[Path]:
    """List the files of a job's reduced edges, in the order of batches."""
    commits = sorted(batches_folder(root, job).glob("*.json"))
    return [root / file for path in commits for file in read_commit(path)["files"]]


def landed_edges(root: Path, job: str) -> pa.Table:
    """Read all reduced edges of a job, by the identifiers of their ends."""
    files = landed_files(root, job)
    kinds = {
        kind: [f for f in files if f.relative_to(root).parts[0] == kind] for kind in (EDGES, ROWS)
    }
    if not kinds[EDGES]:
        return FINAL.empty_table()
    edges = pa.concat_tables([pq.read_table(f, partitioning=None) for f in kinds[EDGES]])
    rows = [pq.read_table(f, partitioning=None).flatten() for f in kinds[ROWS]]
    known = pa.concat_tables([table.select(["a", "b", "row.entity"]) for table in rows])
    known = known.group_by(["a", "b", "row.entity"]).aggregate([])
    out = edges.select(["sink_a", "sink_b", "source_a", "source_b"])
    for end, side in (("output", "sink"), ("input", "source")):
        named = known.rename_columns([f"{side}_a", f"{side}_b", end])
        out = out.join(named, [f"{side}_a", f"{side}_b"], join_type="inner")
    return out.select(["output", "input"]).group_by(["output", "input"]).aggregate([])
