"""The rows and edges of finished batches, as tables of DuckDB.

`Gathered` fills three tables for one step of a graph: `edge`, `sink_row` and, of the source rows
that are asked for, `source_row`. No Spark is needed, so a graph costs a running query little.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from clew.exceptions import WriterError
from clew.store import packed
from clew.store.commit import stored_mask
from clew.store.engine import as_pattern, literal, unsafe_optimizers
from clew.store.spill import database

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    import duckdb

    from clew.expiry.parts import Part

_EDGES = pa.schema(
    [
        ("sink", pa.string()),
        ("sink_a", pa.int64()),
        ("sink_b", pa.int64()),
        ("stream", pa.string()),
        ("a", pa.int64()),
        ("b", pa.int64()),
    ]
)
_TIME = "epoch_us(CAST(time AS TIMESTAMPTZ))"


def connect() -> duckdb.DuckDBPyConnection:
    """Open an empty database in memory."""
    connection = database()
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute(f"SET disabled_optimizers = {literal(unsafe_optimizers(connection))}")
    # One thread: the cores belong to the queries that the graph follows.
    connection.execute("SET threads = 1")
    return connection


def read_edges(path: Path) -> pa.Table:
    """Read a file of edges, packed or not."""
    return packed.read_edges(path).rename_columns(_EDGES.names).cast(_EDGES)


class Gathered:
    """What a step of a graph takes in.

    Args:
        db: The database; `edge` and `sink_row` are made anew there.
        root: The store.
        parts: What was finished.
        sources: The streams of each query that are sources, not named frames inside it.
        with_content: Bring the content of rows along.
    """

    def __init__(
        self,
        db: duckdb.DuckDBPyConnection,
        root: Path,
        parts: Sequence[Part],
        sources: Mapping[str, frozenset[str]],
        *,
        with_content: bool = True,
    ) -> None:
        self._db = db
        self._root = root
        self._parts = parts
        self._with_content = with_content
        self._gather_sinks()
        self._gather_edges(sources)

    def _gather_sinks(self) -> None:
        files: dict[str, list[str]] = {}
        for part in self._parts:
            files.setdefault(part.writer, []).extend(part.sink_files)
        selects = [s for writer, each in files.items() for s in self._selects(writer, each)]
        empty = (
            "SELECT NULL::VARCHAR AS stream, 0::BIGINT AS a, 0::BIGINT AS b, NULL::VARCHAR AS "
            'segment, NULL::BIGINT AS time, NULL::VARCHAR AS "row" WHERE false'
        )
        # Rows that cannot be told apart have one id, and are one vertex.
        self._db.execute(
            "CREATE OR REPLACE TEMP TABLE sink_row AS SELECT DISTINCT ON (stream, a, b) * FROM "
            f"({' UNION ALL '.join([empty, *selects])})"
        )

    def _gather_edges(self, sources: Mapping[str, frozenset[str]]) -> None:
        tables = [_EDGES.empty_table()]
        mixed = [_EDGES.empty_table()]
        seen: set[str] = set()
        for part in self._parts:
            for file in part.edge_files:
                if file not in seen:
                    seen.add(file)
                    (mixed if part.mixed else tables).append(read_edges(self._root / file))
        self._db.register("all_edges", pa.concat_tables(tables))
        self._db.register("mixed_edges", pa.concat_tables(mixed))
        wanted = [(sink, source) for sink, each in sources.items() for source in sorted(each)]
        names = {"sink": [w for w, _ in wanted], "stream": [s for _, s in wanted]}
        self._db.register(
            "between",
            pa.table(names, schema=pa.schema([("sink", pa.string()), ("stream", pa.string())])),
        )
        self._db.execute(
            "CREATE OR REPLACE TEMP TABLE edge AS SELECT DISTINCT e.* FROM ("
            "SELECT * FROM all_edges UNION ALL SELECT m.* FROM mixed_edges m SEMI JOIN sink_row r "
            "ON r.stream = m.sink AND r.a = m.sink_a AND r.b = m.sink_b"
            ") e SEMI JOIN between USING (sink, stream)"
        )
        for name in ("all_edges", "mixed_edges", "between"):
            self._db.unregister(name)

    def fetch_sources(self, wanted: str) -> None:
        """Make the table `source_row` with the rows whose ids are in another table.

        Args:
            wanted: A table with `stream`, `a` and `b`.
        """
        files: dict[str, dict[str, None]] = {}
        for part in self._parts:
            for stream, each in part.source_files.items():
                files.setdefault(stream, {}).update(dict.fromkeys(each))
        selects = [
            select
            for stream, each in files.items()
            for select in self._selects(stream, list(each), wanted)
        ]
        empty = "SELECT * FROM sink_row WHERE false"
        self._db.execute(
            "CREATE OR REPLACE TEMP TABLE source_row AS SELECT DISTINCT ON (stream, a, b) * FROM "
            f"({' UNION ALL '.join([empty, *selects])})"
        )

    def _selects(
        self, stream: str, files: Iterable[str], wanted: str | None = None
    ) -> Iterable[str]:
        """Select the rows of files; those with other columns are read apart."""
        groups: dict[str, list[str]] = {}
        for file in files:
            path = self._root / file
            groups.setdefault(str(pq.read_schema(path).field("row").type), []).append(str(path))
        content = 'CAST(to_json("row") AS VARCHAR)' if self._with_content else "NULL::VARCHAR"
        for paths in groups.values():
            listed = ", ".join(literal(as_pattern(path)) for path in paths)
            only = (
                f"SEMI JOIN (SELECT a, b FROM {wanted} WHERE stream = {literal(stream)}) "
                "USING (a, b)"
                if wanted
                else ""
            )
            yield (
                f"SELECT {literal(stream)} AS stream, a, b, segment, {_TIME} AS time, "
                f'{content} AS "row" FROM read_parquet([{listed}], hive_partitioning = false) '
                f"{only}"
            )


def merge_equal_results(db: duckdb.DuckDBPyConnection, root: Path) -> None:
    """Let results with equal content and time be one vertex, in `sink_row` and `edge`.

    A vertex is then named by a hash of both instead of the row's own id.
    """
    rows = db.sql('SELECT stream, a, b, time, "row" FROM sink_row').to_arrow_table()
    if rows.column("time").null_count:
        msg = (
            "results are merged by content and event time, and some have no event time.\n\n"
            'Name its column where the query is written: `.provenance(path, event_time="ts")`, or '
            'take `results="unique"`.'
        )
        raise WriterError(msg)
    for stream in rows.column("stream").unique().to_pylist():
        if stored_mask(root, stream).columns:
            msg = (
                f"results are merged by content, and columns of `{stream}` are masked in the "
                'store, so different results would be one.\n\nTake `results="unique"`.'
            )
            raise WriterError(msg)
    texts = zip(*(rows.column(n).to_pylist() for n in ("stream", "time", "row")), strict=True)
    digests = b"".join(
        hashlib.md5(repr(each).encode(), usedforsecurity=False).digest() for each in texts
    )
    halves = np.frombuffer(digests, dtype=">i8").astype(np.int64).reshape(-1, 2)
    named = rows.select(["stream", "a", "b"])
    named = named.append_column("to_a", pa.array(halves[:, 0]))
    named = named.append_column("to_b", pa.array(halves[:, 1]))
    db.register("renamed", named)
    db.execute(
        "CREATE OR REPLACE TEMP TABLE edge AS SELECT DISTINCT e.sink, n.to_a AS sink_a, "
        "n.to_b AS sink_b, e.stream, e.a, e.b FROM edge e JOIN renamed n "
        "ON n.stream = e.sink AND n.a = e.sink_a AND n.b = e.sink_b"
    )
    db.execute(
        "CREATE OR REPLACE TEMP TABLE sink_row AS SELECT DISTINCT ON (stream, a, b) r.stream, "
        'n.to_a AS a, n.to_b AS b, r.segment, r.time, r."row" FROM sink_row r JOIN renamed n '
        "ON n.stream = r.stream AND n.a = r.a AND n.b = r.b"
    )
    db.unregister("renamed")
