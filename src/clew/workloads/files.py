"""Lay a table out as the files of a finite stream.

Spark's file source takes files in the order of their modification times, and in append mode it
gives a window's result only when a later row moves the watermark past the window. So files
get rising times, a second apart, and the last one ends with a closing row.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

_FIRST_MODIFIED = 1_704_067_200  # fixed, so that a folder is the same each time it is made


@dataclass(frozen=True)
class Part:
    """One written file.

    Attributes:
        path: Where the file is.
        first: The index, in the table, of the file's first row. The row at position `i` of
            the file is row `first + i` of the table.
        rows: How many rows the file holds, the closing row included.
    """

    path: Path
    first: int
    rows: int


def write_files(
    table: pa.Table, folder: str | Path, *, files: int = 1, closing: pa.Table | None = None
) -> list[Part]:
    """Write a table as Parquet files that a stream reads in order.

    Rows keep the table's order, which for the generators is the order of arrival. A folder
    that already has files grows: numbers and modification times go on from the last one.

    Args:
        table: The rows.
        folder: Where the files go; made when it is not there.
        files: How many files, of about the same number of rows.
        closing: Rows that end the last file, to move the watermark past every window. They
            count as rows behind the table's last one.

    Returns:
        The files, in the order in which a stream takes them.

    Raises:
        ValueError: There are fewer rows than files, or no file is asked for.

    Examples:
        >>> from tempfile import mkdtemp
        >>> parts = write_files(pa.table({"x": [1, 2, 3, 4, 5]}), mkdtemp(), files=2)
        >>> [(part.path.name, part.first, part.rows) for part in parts]
        [('part-00000.parquet', 0, 2), ('part-00001.parquet', 2, 3)]
    """
    if not 1 <= files <= table.num_rows:
        msg = f"`files` is 1 to the number of rows, {table.num_rows}; got {files}"
        raise ValueError(msg)
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    present = sorted(folder.glob("part-*.parquet"))
    modified = int(present[-1].stat().st_mtime) + 1 if present else _FIRST_MODIFIED
    bounds = [table.num_rows * i // files for i in range(files + 1)]
    parts = []
    for i, (first, last) in enumerate(pairwise(bounds)):
        rows = table.slice(first, last - first)
        if closing is not None and last == table.num_rows:
            rows = pa.concat_tables([rows, closing.cast(table.schema)])
        path = folder / f"part-{len(present) + i:05d}.parquet"
        _write(rows, path, modified + i)
        parts.append(Part(path, first, rows.num_rows))
    return parts


def _write(rows: pa.Table, path: Path, modified: int) -> None:
    # A running stream lists the folder at any time: it must find whole files with their final
    # time, and Spark does not look at names that begin with a dot.
    unfinished = path.with_name(f".{path.name}")
    pq.write_table(rows, unfinished)
    os.utime(unfinished, (modified, modified))
    unfinished.rename(path)
