"""Streams as an aligned table, and how long their rows stay alive."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

from clew import show

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.ask.streams import Stream


def lines(streams: Sequence[Stream]) -> list[show.Line]:
    """Show streams as an aligned table, and their gaps."""
    if not streams:
        return [show.Line("note", "The store has no streams yet.")]
    table = show.table(header(), [cells(each) for each in streams])
    gaps = dict.fromkeys(gap for each in streams for gap in each.gaps)
    alive = [show.Line("note", show.escape(text)) for text in _without_bound(streams)]
    return [
        *table,
        *alive,
        *(show.Line("warning", f"missing: {show.escape(str(gap))}") for gap in gaps),
    ]


def header() -> list[str]:
    """Return the names of the columns of a table of streams."""
    return [
        "stream",
        "kind",
        "from",
        "capture",
        "exactness",
        "batches",
        "rows",
        "edges",
        "watermark",
        "U",
    ]


def cells(stream: Stream) -> list[str]:
    """Return the line of a stream in a table of streams."""
    exactness = stream.exactness if stream.kind != "source" else None
    numbers = (stream.batches, stream.sink_rows, stream.edges)
    return [
        stream.name,
        stream.kind,
        ", ".join(stream.sources) or "-",
        stream.capture or "-",
        exactness or "-",
        *("-" if each is None else f"{each:,}" for each in numbers),
        "-" if stream.watermark is None else show.iso(stream.watermark),
        until(stream.bound) if stream.bounds else "-",
    ]


def until(bound: dt.timedelta | None) -> str:
    """Write a bound with the largest unit that it is a whole number of.

    Examples:
        >>> until(dt.timedelta(seconds=150))
        '150 s'
    """
    if bound is None:
        return "none"
    micros = bound // dt.timedelta(microseconds=1)
    units = {"h": 3_600_000_000, "min": 60_000_000, "s": 1_000_000, "ms": 1_000, "us": 1}
    if not micros:
        return "0"
    name, size = next((n, s) for n, s in units.items() if micros % s == 0)
    return f"{micros // size} {name}"


def _without_bound(streams: Sequence[Stream]) -> list[str]:
    """Say which sources' rows never expire for which queries, and why."""
    return [
        f"rows of {source} stay alive for {stream.name}: {'; '.join(bound['why'])}"
        for stream in streams
        for source, bound in stream.bounds.items()
        if bound["micros"] is None
    ]
