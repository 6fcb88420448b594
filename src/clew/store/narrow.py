"""Take the edges of some results out of an unfolding, and leave the others as they are.

An unfolding holds the edges of several batches in the same files. When some of these batches are
pruned, what is left is written beside, under other names, and the commit of the unfolding is
replaced by one that names the new files. What belongs to a result is what can be reached from it:
its edges, and those of the rows of named frames that they lead to.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from clew.steps import reached
from clew.store.commit import put_json
from clew.store.edges import EDGES as EDGE_SCHEMA
from clew.store.layout import EDGES, ROWS, unquote_name
from clew.store.packed import pack_folder, read_edges

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_ID = ["stream", "a", "b"]
ROW_IDS = pa.schema([("stream", pa.string()), ("a", pa.int64()), ("b", pa.int64())])


def narrow(
    root: Path, commit: Path, said: dict[str, Any], gone: Iterable[int], kept: pa.Table
) -> None:
    """Keep of an unfolding what belongs to some results.

    Args:
        root: The store.
        commit: The file that commits the unfolding.
        said: What it says.
        gone: The batches whose results are taken out, with those taken out before.
        kept: The results that stay, in the columns of `ROW_IDS`.
    """
    numbers = sorted(gone)
    mark = hashlib.sha256(json.dumps(numbers).encode()).hexdigest()[:8]
    edges = _read_edges(root, [f for f in said["files"] if f.startswith(EDGES)])
    edges, reachable = _reach(edges, kept)
    files = _put_edges(root, said["files"], edges, mark)
    for file in (f for f in said["files"] if f.startswith(ROWS)):
        files += _put_rows(root, file, reachable, mark)
    reached("unfolding narrowed", said["first"])
    put_json(commit, {**said, "files": files, "edges": edges.num_rows, "pruned": numbers})


def ids_of(stream: str, files: Sequence[Path]) -> pa.Table:
    """Read the ids of a stream's rows in some files, each once."""
    parts = [pq.read_table(f, columns=["a", "b"], partitioning=None) for f in files]
    return as_ids(stream, pa.concat_tables(parts)) if parts else ROW_IDS.empty_table()


def as_ids(stream: str, halves: pa.Table) -> pa.Table:
    """Name the stream of ids in columns `a` and `b`, each once."""
    once = halves.select(["a", "b"]).group_by(["a", "b"]).aggregate([])
    names = pa.array([stream] * once.num_rows, pa.string())
    return pa.table([names, once["a"], once["b"]], names=_ID).cast(ROW_IDS)


def _read_edges(root: Path, files: Sequence[str]) -> pa.Table:
    return pa.concat_tables([EDGE_SCHEMA.empty_table(), *(read_edges(root / f) for f in files)])


def _reach(edges: pa.Table, kept: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Find what can be reached from some rows: the edges, and all rows at their ends."""
    known, new = kept, kept
    while new.num_rows:
        found = edges.join(new, ["sink", "sink_a", "sink_b"], _ID, join_type="left semi")
        ends = found.select(["source", "source_a", "source_b"]).rename_columns(_ID)
        new = ends.group_by(_ID).aggregate([]).join(known, _ID, join_type="left anti")
        known = pa.concat_tables([known, new.select(_ID)])
    return edges.join(known, ["sink", "sink_a", "sink_b"], _ID, join_type="left semi"), known


def _put_edges(root: Path, before: Sequence[str], edges: pa.Table, mark: str) -> list[str]:
    place = next((root / f for f in before if f.startswith(EDGES)), None)
    if place is None or not edges.num_rows:
        return []
    draft = place.parent / f"_{mark}"
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir()
    _write(edges, draft / "part-0.parquet")
    pack_folder(draft)
    files = []
    for path in sorted(draft.glob("*.parquet")):
        target = place.parent / f"{path.stem}-{mark}.parquet"
        path.replace(target)
        files.append(target.relative_to(root).as_posix())
    shutil.rmtree(draft)
    return files


def _put_rows(root: Path, file: str, reachable: pa.Table, mark: str) -> list[str]:
    stream = unquote_name(PurePosixPath(file).parts[3])
    table = pq.read_table(root / file, partitioning=None, coerce_int96_timestamp_unit="us")
    ids = as_ids(stream, table)
    wanted = ids.join(reachable, _ID, join_type="left semi")
    places = table.select(["a", "b"]).append_column(
        "at", pa.array(range(table.num_rows), pa.int64())
    )
    lines = places.join(wanted.select(["a", "b"]), ["a", "b"], join_type="left semi")
    if not lines.num_rows:
        return []
    target = (root / file).with_name(f"{Path(file).stem}-{mark}.parquet")
    _write(table.take(lines["at"].sort()), target)
    return [target.relative_to(root).as_posix()]


def _write(table: pa.Table, path: Path) -> None:
    pq.write_table(table, path, compression="zstd")
    with path.open("rb") as file:
        os.fsync(file.fileno())
