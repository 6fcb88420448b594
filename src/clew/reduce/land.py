"""Where reduced edges go.

This is the one place that knows how the reduced edges of a job are kept: a folder for each batch,
replaced if the batch comes again, and a commit file that comes last.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from clew.reduce.words import FINAL
from clew.store.commit import now, put_json
from clew.store.layout import batch_folder, quote_name, read_json

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

REDUCED = "reduced"


def land(root: Path, job: str, run: str, batch: int, files: Sequence[Path]) -> None:
    """Put the reduced edges of a batch into the store, replacing what is there of it.

    Args:
        root: The store.
        job: The job.
        run: Eight hex digits that stand for this reduction.
        batch: The number of the batch.
        files: Parquet files with `output` and `input`.
    """
    folder = root / REDUCED / quote_name(job)
    name = batch_folder(run, batch)
    commit = folder / f"{name}.json"
    commit.unlink(missing_ok=True)
    shutil.rmtree(folder / name, ignore_errors=True)
    (folder / name).mkdir(parents=True)
    edges = 0
    for number, file in enumerate(files):
        shutil.copyfile(file, folder / name / f"part-{number}.parquet")
        edges += pq.read_metadata(file).num_rows
    put_json(commit, {"job": job, "run": run, "batch": batch, "edges": edges, "committed": now()})


def landed_files(root: Path, job: str) -> list[Path]:
    """List the files of a job's reduced edges, committed batches only."""
    folder = root / REDUCED / quote_name(job)
    stems = sorted(p.stem for p in folder.glob("*.json") if read_json(p))
    return [file for stem in stems for file in sorted((folder / stem).glob("*.parquet"))]


def landed_edges(root: Path, job: str) -> pa.Table:
    """Read all reduced edges of a job."""
    return pa.concat_tables(
        [
            FINAL.empty_table(),
            *(pq.read_table(p, partitioning=None) for p in landed_files(root, job)),
        ]
    )
