"""Labels of rows, as short as still tells them apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.ask.row import Row
    from clew.model import RowId


def short_labels(rows: Sequence[Row]) -> dict[RowId, str]:
    """Name segments by their last path part, if that tells the segments of a stream apart."""
    segments = {(row.stream, row.segment) for row in rows if row.position is not None}
    short = {(stream, (segment or "").rsplit("/", 1)[-1]) for stream, segment in segments}
    if len(short) < len(segments):
        return {row.id: row.label for row in rows}
    return {row.id: row.label.rsplit("/", 1)[-1] for row in rows}
