"""Take the content of a row out of a store, and keep what it was connected to.

Only a row that can take part in nothing more is erased: otherwise its content could come back with
the next result. Ids, edges and event times stay, so every answer is as it was, without the row's
values. Files are replaced one by one, each whole; a process that dies in between is begun again.
"""

from __future__ import annotations

import glob
import os
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from clew.live.elements import LIVE, VERTEX
from clew.store.asserted import recorded_streams, rounds_of
from clew.store.commit import now, put_json
from clew.store.inside import refuse_links, store_file
from clew.store.layout import ASSERTIONS, POINTS, quote_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from clew.ask.trace import Trace
    from clew.model import RowId
    from clew.store.reader import Snapshot

ERASED = "erased"
_KEPT = ("_clew_kept_a", "_clew_kept_b")


@dataclass(frozen=True, slots=True, repr=False)
class Erased:
    """What was erased.

    Attributes:
        row: The row.
        results: Every result that it went into; their content is still there.
        copies: How many copies of its content were taken out.
    """

    row: RowId
    results: Trace
    copies: int

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as plain data that JSON can hold."""
        return {
            "stream": self.row.stream,
            "id": self.row.text,
            "copies": self.copies,
            "results": self.results.rows.to_dicts(),
        }

    def __repr__(self) -> str:
        return f"Erased({self.row.text} of {self.row.stream}: {self.copies} copies)"


def erase_content(snapshot: Snapshot, row: RowId) -> int:
    """Take the content of a row out of all files of a store; return how many copies there were."""
    refuse_links(snapshot.root)
    identity = snapshot.streams[row.stream].identity or {}
    # The segment of a row that is identified by a key is the key itself.
    gone = ["row", "segment"] if identity.get("kind") == "key" else ["row"]
    copies = 0
    # An entity is the same row in the stream of the job that generated it and where it was used.
    streams = snapshot.shared if row.stream in snapshot.shared else {row.stream}
    files = [path for each in sorted(streams) for path in snapshot.row_files(each).paths]
    for path in map(Path, files):
        copies += _change(path, ("a", "b"), row, lambda t, m: (_emptied(t, m, gone), m))
    for path in sorted(snapshot.root.glob(f"{LIVE}/*/**/*.parquet")):
        copies += _change(
            path, ("a", "b"), row, lambda t, m: (_emptied(t, m := _vertices(t, m), gone), m)
        )
    for path in sorted(snapshot.root.glob(f"{POINTS}/*/{quote_name(row.stream)}/*/*.parquet")):
        copies += _change(path, _KEPT, row, lambda t, m: (t.filter(pc.invert(m)), m))
    for path, time in _recorded(snapshot.root, row):
        copies += _empty_line(path, row.b, time)
    for path in sorted(snapshot.root.glob(f"{ASSERTIONS}/*/*/{quote_name(row.stream)}/keys-*")):
        if "row" in pq.read_schema(path).names:
            copies += _change(path, ("a", "b"), row, lambda t, m: (_emptied(t, m, ["row"]), m))
    note = snapshot.root / ERASED / quote_name(row.stream) / f"{row.text}.json"
    put_json(note, {"erased": now(), "copies": copies})
    return copies


def _recorded(root: Path, row: RowId) -> Iterator[tuple[Path, str | None]]:
    """Find the copies of source files that hold a row, with the column that has its time."""
    streams = recorded_streams(root)
    for writer in sorted({each.writer for each in streams.values()}):
        for each in rounds_of(root, writer):
            for copy in each.streams.get(row.stream, {}).get("copies", ()):
                if copy["a"] == row.a:
                    yield store_file(root, copy["file"]), streams[row.stream].time


def _empty_line(path: Path, line: int, time: str | None) -> int:
    """Set everything in one line of a file to null, but for its time."""
    _drop_stale_checksum(path)
    table = pq.read_table(path, partitioning=None, coerce_int96_timestamp_unit="us")
    mask = pa.chunked_array([pa.array(np.arange(table.num_rows) == line)])
    names = [name for name in table.column_names if name != time]
    changed = _emptied(table, mask, names)
    if changed.equals(table):
        return 0
    _replace(path, changed)
    return 1


def _change(
    path: Path,
    names: tuple[str, str],
    row: RowId,
    change: Callable[[pa.Table, pa.ChunkedArray], tuple[pa.Table, pa.ChunkedArray]],
) -> int:
    """Replace a file by a changed one if it holds a row; return how many lines were changed.

    Args:
        path: The file.
        names: The columns with the row's id.
        row: The row.
        change: Changes a table, given the lines with the id; returns it and the lines it changed.
    """
    _drop_stale_checksum(path)
    ids = pq.read_table(path, columns=list(names), partitioning=None)
    mask = pc.and_(pc.equal(ids.column(names[0]), row.a), pc.equal(ids.column(names[1]), row.b))
    mask = pc.fill_null(mask, False)
    if not pc.any(mask).as_py():
        return 0
    table = pq.read_table(path, partitioning=None, coerce_int96_timestamp_unit="us")
    changed, lines = change(table, mask)
    if changed.equals(table):
        return 0
    _replace(path, changed)
    return int(pc.sum(lines).as_py())


def _replace(path: Path, changed: pa.Table) -> None:
    for left in path.parent.glob(f".{glob.escape(path.name)}.*.tmp"):
        left.unlink(missing_ok=True)  # of an erasure that was killed: it holds content, too
    draft = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        pq.write_table(changed, draft, compression="zstd")
        with draft.open("rb") as file:
            os.fsync(file.fileno())
        # Spark leaves a checksum beside a file, and reads a file that has none. So the checksum
        # goes first: whoever dies in between leaves a file that can be read.
        _checksum(path).unlink(missing_ok=True)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def _checksum(path: Path) -> Path:
    return path.with_name(f".{path.name}.crc")


def _drop_stale_checksum(path: Path) -> None:
    """Take away a checksum that is older than its file: Spark refuses to read the two."""
    try:
        is_stale = _checksum(path).stat().st_mtime_ns < path.stat().st_mtime_ns
    except FileNotFoundError:
        return
    if is_stale:
        _checksum(path).unlink(missing_ok=True)


def _vertices(table: pa.Table, mask: pa.ChunkedArray) -> pa.ChunkedArray:
    """Keep of a choice of elements the vertices."""
    return pc.and_(mask, pc.equal(table.column("element"), VERTEX))


def _emptied(table: pa.Table, mask: pa.ChunkedArray, names: list[str]) -> pa.Table:
    """Set columns of chosen rows to null."""
    chosen = mask.combine_chunks()
    for name in names:
        place = table.column_names.index(name)
        field = table.schema.field(name)
        old = table.column(name).combine_chunks()
        if pa.types.is_struct(field.type):
            is_null = pc.or_(chosen, old.is_null())
            parts = [old.field(i) for i in range(field.type.num_fields)]
            # The values themselves must go, not only the mark that there are some.
            parts = [pc.if_else(is_null, pa.scalar(None, p.type), p) for p in parts]
            fields = [f.with_nullable(True) for f in field.type]
            new = pa.StructArray.from_arrays(parts, fields=fields, mask=is_null)
        else:
            new = pc.if_else(chosen, pa.scalar(None, field.type), old)
        table = table.set_column(place, pa.field(name, new.type, nullable=True), new)
    return table
