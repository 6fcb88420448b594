"""Event keys in few bytes.

Keys are sorted by time and id before they are written, so that neighbours differ little: times and
positions are then kept as differences. The hashes that derived rows have for ids are written as
they are, since nothing makes a hash shorter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from clew.store.private import make_folder

if TYPE_CHECKING:
    from pathlib import Path

_ORDER = [("time", "ascending"), ("a", "ascending"), ("b", "ascending")]
_FEW_SEGMENTS = 16
_ROWS_IN_GROUP = 1 << 20


def put_keys(keys: pa.Table, path: Path) -> None:
    """Write keys, and the rows that are with them if any, to a new file.

    Args:
        keys: `a`, `b`, `time`, `delay` and perhaps `row`.
        path: The file.
    """
    make_folder(path.parent)
    kept = keys.sort_by(_ORDER)
    # With few segments, ids are positions in them; with many, they are hashes.
    is_position = pc.count_distinct(kept["a"]).as_py() <= _FEW_SEGMENTS + kept.num_rows // 1000
    encodings = {"time": "DELTA_BINARY_PACKED", "delay": "DELTA_BINARY_PACKED"}
    encodings |= {"b": "DELTA_BINARY_PACKED"} if is_position else {}
    pq.write_table(
        kept,
        path,
        compression="zstd",
        use_dictionary=["a"] if is_position else False,
        column_encoding=encodings,
        row_group_size=_ROWS_IN_GROUP,
        write_statistics=["a", "b", "time"],
    )
