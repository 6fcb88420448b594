"""The answer to a question: where rows came from, or what they led to.

A `Trace` holds Arrow tables and shows them as rows, edges, text, a DataFrame or plain data. It
always says how far it can be trusted: `exactness` for what is in it, `gaps` for what may be
missing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from clew import show
from clew.exceptions import QueryError
from clew.model import Edge, RowId

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable

    import pandas as pd
    import pyarrow as pa

    from clew.ask.expires import Expiry
    from clew.ask.influence import Influence
    from clew.ask.path import Steps
    from clew.ask.provenance import Provenance
    from clew.ask.row import Content, Row, Rows
    from clew.ask.scope import Direction
    from clew.model import Exactness, Status
    from clew.show.drawing import Drawing
    from clew.show.export import Form, ProvForm
    from clew.show.timeline import Timeline
    from clew.store.records import Batch, Gap

    Look = Callable[[str, pa.Table], Content | None]
    """Looks up the content of rows of a stream by their ids; None if it cannot any more."""
    When = Callable[[Rows, int | None], dict[RowId, Expiry]]
    """Says when the first rows of an answer expire."""

_SHOWN = 20

STATUS = {
    "alive": "alive, more results may follow",
    "expired": "expired, nothing more will follow",
}
"""What the status of rows means, in words."""


@dataclass(frozen=True, repr=False, eq=False)
class Trace:
    """What was found for one or several rows.

    Attributes:
        direction: `backward` or `forward`.
        stream: The stream of the rows asked about.
        start: The rows asked about.
        rows: The rows at the ends: source rows or, under a scope, rows of its streams; forward,
            the rows of every sink that was reached.
        path: The operators passed, one line per way, in the order in which rows travel.
        exactness: The worst label of the streams passed.
        gaps: Batches whose provenance is missing and that could have added to the answer.
        seconds: How long the answer took.
        scope: The streams that the answer was kept to, if any.
        status: Forward: `alive` if more results may follow, `expired` if none will.
        runs: The queries, each with its runs, that made the edges of the answer.
        steps: The operators passed, as a graph for each pair of streams.
        batches: The batches, and what was unfolded of them, that hold the edges of the answer.
    """

    direction: Direction
    stream: str
    start: Rows
    rows: Rows
    path: tuple[str, ...]
    exactness: Exactness
    gaps: tuple[Gap, ...]
    seconds: float
    scope: tuple[str, ...] | None
    _tables: tuple[pa.Table, ...]
    status: Status | None = None
    runs: tuple[tuple[str, str], ...] = ()
    steps: tuple[Steps, ...] = ()
    batches: tuple[Batch, ...] = ()
    _look: Look | None = None
    _when: When | None = None
    _asked: Provenance | None = None

    def __getstate__(self) -> dict[str, Any]:
        # The store cannot travel with the answer to another process.
        return {**self.__dict__, "_look": None, "_when": None, "_asked": None}

    def asked_of(self, provenance: Provenance) -> Trace:
        """Return the answer with where it came from, to ask on."""
        return replace(self, _asked=provenance)

    @property
    def complete(self) -> bool:
        """Whether no missing batch could add to the answer."""
        return not self.gaps

    @property
    def sources(self) -> Rows:
        """The rows on the side of the sources: backward those found, forward those asked about."""
        return self.rows if self.direction == "backward" else self.start

    @property
    def results(self) -> Rows:
        """The rows on the side of the results: forward those found, backward those asked about."""
        return self.rows if self.direction == "forward" else self.start

    @property
    def hop_tables(self) -> tuple[pa.Table, ...]:
        """The edges followed as Arrow tables, level by level."""
        return self._tables

    @property
    def look(self) -> Look | None:
        """Looks up rows on the way, whose content is not in the answer."""
        return self._look

    @cached_property
    def hops(self) -> tuple[tuple[Edge, ...], ...]:
        """The edges followed, level by level from the rows asked about."""
        return tuple(tuple(_edges(each)) for each in self._tables)

    @property
    def edges(self) -> tuple[Edge, ...]:
        """All edges followed, in the order of `hops`."""
        return tuple(edge for hop in self.hops for edge in hop)

    @property
    def by_stream(self) -> dict[str, int]:
        """How many rows at the ends each stream has."""
        return {each.stream: each.table.num_rows for each in self.rows.contents}

    def first_edges(self, limit: int | None = None) -> list[Edge]:
        """Return the first edges followed, in the order of `hops`; the others cost nothing.

        Args:
            limit: At most so many; None for all.
        """
        found: list[Edge] = []
        for each in self._tables:
            room = None if limit is None else limit - len(found)
            found += _edges(each.slice(0, room))
        return found

    def of(self, stream: str) -> Rows:
        """Return the rows at the ends that belong to one stream."""
        return self.rows.of(stream)

    def to_arrow(self) -> pa.Table:
        """Return the rows at the ends as an Arrow table.

        The first columns are `stream`, `id`, `segment`, `position` and `time`; the user's
        follow. A user's column with one of those names is called `row.<name>`.
        """
        return self.rows.to_arrow()

    def to_pandas(self) -> pd.DataFrame:
        """Return the rows at the ends as a DataFrame, with the columns of `to_arrow`."""
        return self.rows.to_pandas()

    def to_dict(self, limit: int | None = None) -> dict[str, Any]:
        """Return the answer as plain data that JSON can hold.

        Args:
            limit: At most so many rows and edges; None for all. `left_out` says how many rows
                are not there.
        """
        rows = self.rows[:limit]
        return {
            "direction": self.direction,
            "stream": self.stream,
            "scope": None if self.scope is None else list(self.scope),
            "start": self.start.to_dicts(),
            "rows": self._dicts(rows, limit),
            "left_out": len(self.rows) - len(rows),
            "by_stream": self.by_stream,
            "edges": [
                {
                    "sink": edge.sink.stream,
                    "sink_id": edge.sink.text,
                    "source": edge.source.stream,
                    "source_id": edge.source.text,
                }
                for edge in self.first_edges(limit)
            ],
            "path": list(self.path),
            "exactness": self.exactness,
            "status": self.status,
            "complete": self.complete,
            "gaps": [gap.to_dict() for gap in self.gaps],
            "seconds": self.seconds,
        }

    def drawing(
        self, limit: int = 200, depth: int | None = None, expand: Iterable[str] = ()
    ) -> Drawing:
        """Return the answer as a drawing in layers: source rows, steps, results.

        What is large is grouped: the first five rows are shown, and how many more there are.

        Args:
            limit: At most so many nodes.
            depth: Draw only rows so many edges away from those asked about; None for all.
            expand: The keys of groups to show more of, as far as the limit allows.

        Raises:
            QueryError: The limit or the depth is too small.
        """
        from clew.show.drawing import draw

        return draw(self, limit, depth, tuple(expand))

    def timeline(self, limit: int = 100) -> Timeline:
        """Return the rows of the answer on a time axis, with the windows of results.

        Args:
            limit: At most so many rows of each stream; more are counted in bins.

        Raises:
            QueryError: The limit is negative.
        """
        from clew.show.timeline import timeline

        return timeline(self, limit)

    def _dicts(self, rows: list[Row], limit: int | None) -> list[dict[str, Any]]:
        """Return rows as plain data; forward, each says whether it may lead to more."""
        if self.direction == "backward":
            return [row.to_dict() for row in rows]
        known = {} if self._when is None else self._when(self.rows, limit)
        return [{**row.to_dict(), **_until(known.get(row.id))} for row in rows]

    def influence(
        self, column: str | None = None, value: str | None = None, *, replay: bool = True
    ) -> Influence:
        """Find the source rows that carry most of the result's value; see `prov.influence`.

        Args:
            column: The column of the result; one that an aggregate makes if left out.
            value: The column of the source rows that is aggregated; by default the pipeline says.
            replay: Run the query again, with Spark, where the rows' own values do not tell.

        Raises:
            QueryError: The trace is not of one result, or there is no such column.
        """
        if self.direction != "backward" or self._asked is None:
            msg = (
                "influence is that of source rows on a result.\n\nAsk for what a row was made from:"
                " `prov.backward(stream, row).influence()`."
            )
            raise QueryError(msg)
        return self._asked.influence_of(self, column, value, replay=replay)

    def to_prov(self, form: ProvForm = "prov-json") -> str:
        """Return the answer as W3C PROV: rows are entities, queries are activities.

        Args:
            form: `prov-json`, `prov-n` or `prov-jsonld`.

        Raises:
            QueryError: There is no such form.
        """
        from clew.show.export import chunks

        return "".join(chunks(self, form))

    def write(self, to: str | os.PathLike[str], form: Form | None = None) -> None:
        """Write the answer to a file, for other tools.

        Args:
            to: The file.
            form: `prov-json`, `prov-n`, `prov-jsonld`, `csv` or `parquet` for the rows,
                `csv-edges` for the edges, `graphml`, `svg` or `png` for the drawing; what the
                file's name ends with says it if left out.

        Raises:
            QueryError: There is no such form, or the file cannot be written.
        """
        from clew.show.export import write_file

        write_file(self, to, form)

    def lines(self, limit: int | None = _SHOWN, hint: str = "") -> list[show.Line]:
        """Show the answer: a sentence, the rows, the path, how far it can be trusted.

        Args:
            limit: At most so many rows; None for all.
            hint: What to say behind the number of rows left out.
        """
        lines = [show.Line("headline", self.headline)]
        if len(self):
            lines += [show.Line("note", ""), *self.rows.lines(limit, hint)]
        return [*lines, show.Line("note", ""), *self.notes()]

    def notes(self) -> list[show.Line]:
        """Say which way the rows took, and how far the answer can be trusted."""
        lines = [show.Line("note", f"path: {show.escape(each)}") for each in self.path]
        lines.append(show.Line("note", f"exactness: {self.exactness}"))
        if self.status is not None:
            lines.append(show.Line("note", f"status: {STATUS[self.status]}"))
        lines += [
            show.Line("warning", f"incomplete, missing {show.escape(str(gap))}")
            for gap in self.gaps
        ]
        return lines

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return show.join(self.lines())

    def _repr_html_(self) -> str:
        from clew.show.page import trace_page

        return trace_page(self)

    @property
    def headline(self) -> str:
        """The answer in a sentence."""
        subject = show.count(len(self.start), "row")
        if len(self.start) == 1:
            subject = f"Row {self.start[0].label}"
        found = [
            f"{show.count(len(self.of(each)), 'row')} of `{each}`" for each in self.rows.streams
        ]
        verb = _verb(self.direction, several=len(self.start) != 1)
        return show.escape(f"{subject} of `{self.stream}` {verb} {self._object(found)}.")

    def _object(self, found: list[str]) -> str:
        if found:
            return show.listing(found)
        if self.direction == "forward":
            return "no result so far in the committed batches"
        return "no other row that the store knows"


def _until(expiry: Expiry | None) -> dict[str, Any]:
    if expiry is None:
        return {"status": None, "expires": None}
    return {"status": expiry.status, "expires": show.plain(expiry.expires)}


def one_of(trace: Trace) -> Row:
    """Return the one row that a trace is about.

    Raises:
        QueryError: It is about several.
    """
    if len(trace.start) != 1:
        msg = f"one row is needed; this is about {len(trace.start)}.\n\nAsk row by row."
        raise QueryError(msg)
    return trace.start[0]


def _verb(direction: Direction, *, several: bool) -> str:
    if direction == "forward":
        return "took part in"
    return "were made from" if several else "was made from"


def _edges(table: pa.Table) -> list[Edge]:
    columns = [table.column(name).to_pylist() for name in table.column_names]
    return [
        Edge(RowId(sink, sink_a, sink_b), RowId(source, source_a, source_b))
        for sink, sink_a, sink_b, source, source_a, source_b in zip(*columns, strict=True)
    ]
