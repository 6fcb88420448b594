"""Parquet: the rows of an answer with their types, for anything that reads tables."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clew.ask.trace import Trace

_AT_ONCE = 100_000


def parquet(trace: Trace) -> Iterator[bytes]:
    """Write the rows at the ends of the answer, with the columns of `Trace.to_arrow`."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = trace.to_arrow()
    pieces = _Pieces()
    with pq.ParquetWriter(pa.PythonFile(pieces, "w"), table.schema, compression="zstd") as writer:
        for first in range(0, table.num_rows, _AT_ONCE):
            writer.write_table(table.slice(first, _AT_ONCE))
            yield pieces.take()
    yield pieces.take()


class _Pieces(io.RawIOBase):
    """A file that is handed on while it is written."""

    def __init__(self) -> None:
        super().__init__()
        self._held = bytearray()
        self._taken = 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._taken + len(self._held)

    def write(self, data: object) -> int:
        piece = bytes(memoryview(data))  # type: ignore[arg-type]  # whatever Arrow hands over
        self._held += piece
        return len(piece)

    def take(self) -> bytes:
        """Return what was written since the last time."""
        piece = bytes(self._held)
        self._taken += len(piece)
        self._held.clear()
        return piece
