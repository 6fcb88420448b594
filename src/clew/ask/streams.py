"""What a store knows of each stream, in one dataclass."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from clew import show
from clew.show.stream_table import until

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from clew.model import Exactness
    from clew.store.reader import Snapshot
    from clew.store.records import Batch, Gap, StreamRecord


@dataclass(frozen=True, repr=False)
class Stream:
    """A stream of the store.

    Attributes:
        name: Its name.
        kind: `source`, `sink`, or `named` for a frame inside a query.
        writer: The query that fills it; None for a source.
        exactness: How answers about its rows relate to the rows that really contributed.
        capture: How its provenance was carried.
        why: Why it was carried so.
        identity: How a source's rows are told apart.
        columns: The user's columns.
        sources: The streams its query reads.
        named: The named frames inside its query.
        feeds: The streams that are made from it.
        batches: How many batches of its query are committed with provenance; None for a source.
        sink_rows: How many rows they hold, with updates counted each time; None if unknown.
        edges: How many edges they hold; None if unknown.
        watermark: The last watermark of its query.
        gaps: The batches whose provenance is missing.
        bounds: For how long a row of each source may take part in its rows: `micros`, how far the
            watermark must be beyond a row's event time, and `why` where there is no such bound.
    """

    name: str
    kind: str
    writer: str | None
    exactness: Exactness | None
    capture: str | None
    why: str | None
    identity: Mapping[str, Any] | None
    columns: tuple[str, ...]
    sources: tuple[str, ...]
    named: tuple[str, ...]
    feeds: tuple[str, ...]
    batches: int | None
    sink_rows: int | None
    edges: int | None
    watermark: dt.datetime | None
    gaps: tuple[Gap, ...]
    bounds: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def bound(self) -> dt.timedelta | None:
        """The bound U: how long a source row may take part in results; None if there is none."""
        found = [each["micros"] for each in self.bounds.values()]
        if not found or None in found:
            return None
        return dt.timedelta(microseconds=max(found))

    def __repr__(self) -> str:
        parts = [self.kind]
        if self.sources:
            parts.append(f"from {show.listing(self.sources)}")
        parts += [each for each in (self.exactness, self.capture) if each]
        if self.identity is not None:
            parts.append(f"rows told apart by {self.identity.get('kind')}")
        if self.batches is not None:
            parts.append(show.count(self.batches, "batch"))
        if self.sink_rows is not None:
            parts.append(show.count(self.sink_rows, "row"))
        if self.edges is not None:
            parts.append(show.count(self.edges, "edge"))
        if self.watermark is not None:
            parts.append(f"watermark {show.iso(self.watermark)}")
        if self.bounds:
            parts.append(f"U {until(self.bound)}")
        if self.gaps:
            parts.append(show.count(len(self.gaps), "gap"))
        if self.feeds:
            parts.append(f"feeds {show.listing(self.feeds)}")
        return show.escape(f"Stream({self.name}: {', '.join(parts)})")

    def _repr_html_(self) -> str:
        from clew.show.page import stream_page

        return stream_page(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the stream as plain data that JSON can hold."""
        return {
            "name": self.name,
            "kind": self.kind,
            "writer": self.writer,
            "exactness": self.exactness,
            "capture": self.capture,
            "why": self.why,
            "identity": show.plain(self.identity),
            "columns": list(self.columns),
            "sources": list(self.sources),
            "named": list(self.named),
            "feeds": list(self.feeds),
            "batches": self.batches,
            "sink_rows": self.sink_rows,
            "edges": self.edges,
            "watermark": show.plain(self.watermark),
            "bounds": show.plain(self.bounds),
            "gaps": [gap.to_dict() for gap in self.gaps],
        }


class Streams(list[Stream]):
    """Streams by name; a list that shows itself as a table in a notebook."""

    def _repr_html_(self) -> str:
        from clew.show.page import streams_page

        return streams_page(self)


def describe_stream(snapshot: Snapshot, record: StreamRecord) -> Stream:
    """Bring together what the store says of a stream and what its batches hold."""
    writer = snapshot.writer(record.name)
    committed = snapshot.batches.get(writer or "", ())
    whole = [each for each in committed if each.gap is None]
    own = whole if record.kind == "sink" else []
    unfolded = snapshot.unfolded.get(record.name, ()) if record.kind == "sink" else ()
    return Stream(
        name=record.name,
        kind=record.kind,
        writer=writer,
        exactness=record.exactness,
        capture=record.capture,
        why=record.why,
        identity=record.identity,
        columns=record.columns,
        sources=record.sources,
        named=record.named,
        feeds=tuple(sorted(snapshot.readers(record.name))),
        batches=None if writer is None else len(whole),
        sink_rows=_sum(each.sink_rows for each in own),
        edges=_sum(each.edges for each in (*own, *unfolded)),
        watermark=_last_watermark(committed),
        gaps=() if writer is None else snapshot.gaps(writer),
        bounds=record.bounds,
    )


def _sum(numbers: Iterable[int | None]) -> int | None:
    known = [each for each in numbers if each is not None]
    return sum(known) if known else None


def _last_watermark(batches: Sequence[Batch]) -> dt.datetime | None:
    for each in reversed(batches):
        if each.watermark is not None:
            found = dt.datetime.fromisoformat(each.watermark.replace("Z", "+00:00"))
            return found if found.tzinfo is not None else found.replace(tzinfo=dt.timezone.utc)
    return None
