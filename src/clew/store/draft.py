"""Lay out what one job computed: edges to their folder, the rows at their ends to theirs.

A Spark job that writes edges and the content of source rows in one go saves computing them twice.
Taking the two apart is a matter of columns, which needs no further job as long as they fit in
memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_IDS = ["source_a", "source_b"]


def split_draft(draft: Path, sink: str, source: str, edges_to: Path, rows_to: Path) -> None:
    """Split a draft with `sink_a`, `sink_b`, `source_a`, `source_b` and `content`.

    Args:
        draft: The folder that the job wrote.
        sink: The stream of the results.
        source: The stream at the other end.
        edges_to: A new folder for the edges.
        rows_to: A new folder for the source rows, each once.
    """
    table = pa.concat_tables([pq.read_table(f, partitioning=None) for f in _files(draft)])
    count = table.num_rows
    edges = pa.table(
        {
            "sink": pa.array([sink] * count, pa.string()),
            "sink_a": table.column("sink_a"),
            "sink_b": table.column("sink_b"),
            "source": pa.array([source] * count, pa.string()),
            "source_a": table.column("source_a"),
            "source_b": table.column("source_b"),
        }
    )
    order = [(name, "ascending") for name in ("sink_a", "sink_b", *_IDS)]
    _put(edges.take(pc.sort_indices(edges, sort_keys=order)), edges_to)
    first = (
        table.select(_IDS)
        .append_column("at", pa.array(range(count), pa.int64()))
        .group_by(_IDS)
        .aggregate([("at", "min")])
        .column("at_min")
    )
    once = table.take(first)
    content = once.column("content").combine_chunks()
    fields = {content.type.field(i).name: each for i, each in enumerate(content.flatten())}
    rows = {"a": once.column("source_a"), "b": once.column("source_b"), **fields}
    _put(pa.table(rows), rows_to)


def ids_in(files: Iterable[Path], a: str, b: str) -> set[tuple[int, int]]:
    """Read the ids that stand in two columns of some files, each once."""
    found: set[tuple[int, int]] = set()
    for path in files:
        table = pq.read_table(path, columns=[a, b], partitioning=None)
        once = table.group_by([a, b]).aggregate([])
        found.update(zip(once.column(a).to_pylist(), once.column(b).to_pylist(), strict=True))
    return found


def merge_folders(folder: Path) -> None:
    """Move the files of a folder's folders into it."""
    for inner in sorted(p for p in folder.iterdir() if p.is_dir()):
        for number, path in enumerate(_files(inner)):
            path.rename(folder / f"{inner.name}-{number}.parquet")
        for rest in inner.iterdir():
            rest.unlink()
        inner.rmdir()


def _put(table: pa.Table, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, folder / "part-0.parquet", compression="snappy")


def _files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.parquet"))
