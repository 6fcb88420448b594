"""What an answer says, in the words of PROV: entities, activities and how they are connected.

Each row is an entity, with its content as attributes where the answer has it; each query whose
edges the answer holds is an activity. An edge is a derivation by the query that fills the stream of
the sink row; that the query used the one row and generated the other is said once for each row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.show.values import Literal, encode, literal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clew.ask.row import Row
    from clew.ask.trace import Trace
    from clew.model import Edge, RowId

Attributes = list[tuple[str, Literal]]
NAME = "prov:QUALIFIED_NAME"
"""The type of a value that is a name."""


class Statements:
    """The statements of one answer.

    Attributes:
        trace: The answer.
        edges: Its edges, each once.
    """

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.edges: list[Edge] = list(dict.fromkeys(trace.edges))
        self._made = {edge.sink for edge in self.edges} | set(trace.results.ids())

    def rows(self) -> Iterator[tuple[RowId, Row | None]]:
        """Yield all rows of the answer, each once: those with content, then those on the way."""
        seen: set[RowId] = set()
        for row in (*self.trace.start, *self.trace.rows):
            if row.id not in seen:
                seen.add(row.id)
                yield row.id, row
        for edge in self.edges:
            for each in (edge.sink, edge.source):
                if each not in seen:
                    seen.add(each)
                    yield each, None

    def role(self, row: RowId) -> str:
        """Say what a row is in the answer: a source row, or one that a query made."""
        return "Result" if row in self._made else "Source"

    def entities(self) -> Iterator[tuple[str, Attributes]]:
        """Yield each row's name and attributes."""
        for each, row in self.rows():
            yield row_name(each), self._describe(each, row)

    def _describe(self, id: RowId, row: Row | None) -> Attributes:
        found: Attributes = [
            ("prov:type", Literal(f"clew:{self.role(id)}", NAME)),
            ("clew:stream", Literal(id.stream)),
            ("clew:id", Literal(id.text)),
        ]
        if row is None:
            return found
        ours = (("segment", row.segment), ("position", row.position), ("time", row.time))
        pairs = [(f"clew:{name}", literal(value)) for name, value in ours]
        pairs += [(f"column:{encode(name)}", literal(value)) for name, value in row.items()]
        return found + [(name, value) for name, value in pairs if value is not None]

    def activities(self) -> Iterator[tuple[str, Attributes]]:
        """Yield each query's name and attributes."""
        for stream in sorted({edge.sink.stream for edge in self.edges}):
            runs = [run for writer, run in self.trace.runs if writer == stream]
            yield (
                query_name(stream),
                [
                    ("prov:type", Literal("clew:Query", NAME)),
                    ("clew:stream", Literal(stream)),
                    *(("clew:run", Literal(run)) for run in runs),
                    ("clew:exactness", Literal(self.trace.exactness)),
                    ("clew:complete", Literal(str(self.trace.complete).lower(), "xsd:boolean")),
                ],
            )

    def used(self) -> Iterator[tuple[str, str]]:
        """Yield each query and each row that it used."""
        for stream, row in dict.fromkeys((e.sink.stream, e.source) for e in self.edges):
            yield query_name(stream), row_name(row)

    def generated(self) -> Iterator[tuple[str, str]]:
        """Yield each row that a query generated, and the query."""
        for row in dict.fromkeys(e.sink for e in self.edges):
            yield row_name(row), query_name(row.stream)

    def derived(self) -> Iterator[tuple[str, str, str]]:
        """Yield each row with a row that it was derived from, and the query that did it."""
        for edge in self.edges:
            yield row_name(edge.sink), row_name(edge.source), query_name(edge.sink.stream)


def row_name(row: RowId) -> str:
    """Name a row."""
    return f"row:{encode(row.stream)}/{row.text}"


def query_name(stream: str) -> str:
    """Name the query that fills a stream."""
    return f"query:{encode(stream)}"
