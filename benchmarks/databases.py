"""The live graph as a database would give it, asked again and again: what Ananke compares with.

Two threads do the work. One puts the provenance that the queries have finished into tables, part by
part; the other one polls: it asks, in SQL, for the vertices, edges and labels that were not
delivered yet, and writes them to files as clew does. `aggressive` polls as often as it can,
`relaxed` once a second. SQLite lives in memory and forgets what it has delivered; PostgreSQL is a
server of its own on disk and keeps it all. Start at `OnDemand`.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from clew.expiry.parts import new_parts
from clew.live.deliver import deliver
from clew.live.elements import EDGE, LABEL, SCHEMA, SINK, SOURCE, VERTEX
from clew.live.gather import Gathered, connect
from clew.live.graph_state import State
from clew.store.reader import Store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from clew.expiry.parts import Part
    from clew.store.reader import Snapshot

RELAXED = 1.0
"""Seconds between two polls of the relaxed kind."""
_LOOK_EVERY = 0.05

Rows = list[tuple[Any, ...]]

_SINK = "stream, a, b, time, content"
_SOURCE = "stream, a, b, time, segment, content"
_EDGE = "sink, sink_a, sink_b, stream, a, b"
_PROGRESS = "name, run, last, watermark, bound"

_TABLES = """
    CREATE TABLE progress (
        name TEXT PRIMARY KEY, run TEXT, last BIGINT, watermark BIGINT, bound BIGINT
    );
    CREATE TABLE sink_row (
        stream TEXT, a BIGINT, b BIGINT, time BIGINT, content TEXT, delivered BIGINT
    );
    CREATE TABLE source_row (
        stream TEXT, a BIGINT, b BIGINT, time BIGINT, segment TEXT, content TEXT,
        delivered BIGINT, labelled BIGINT, PRIMARY KEY (stream, a, b)
    );
    CREATE TABLE edge (
        sink TEXT, sink_a BIGINT, sink_b BIGINT, stream TEXT, a BIGINT, b BIGINT, delivered BIGINT
    );
    CREATE INDEX new_sink ON sink_row (a) WHERE delivered IS NULL;
    CREATE INDEX new_source ON source_row (a) WHERE delivered IS NULL;
    CREATE INDEX new_edge ON edge (a) WHERE delivered IS NULL;
    CREATE INDEX alive ON source_row (time) WHERE labelled IS NULL;
"""


@dataclass(frozen=True)
class Arrived:
    """A part of the provenance that a query has finished, as plain rows."""

    part: Part
    sinks: Rows
    sources: Rows
    edges: Rows


@dataclass(frozen=True)
class Polled:
    """What one poll found: how far each query is, and what was not delivered yet."""

    progress: Rows
    sinks: Rows
    sources: Rows
    edges: Rows
    labels: Rows

    def __bool__(self) -> bool:
        return bool(self.sinks or self.sources or self.edges or self.labels)


class Database(Protocol):
    """Holds a graph that is being built."""

    def begin(self, bounds: Sequence[tuple[str, int]]) -> None:
        """Name the queries, each with its bound U in microseconds."""

    def insert(self, arrived: Arrived) -> None:
        """Take in a part of the provenance."""

    def poll(self, step: int) -> Polled:
        """Find what was not delivered yet, and mark it as delivered."""

    def close(self) -> None:
        """Let go of everything."""


class Sqlite:
    """SQLite in memory. Rows are deleted once nothing of them is left to deliver."""

    def __init__(self) -> None:
        self._db = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
        self._lock = threading.Lock()
        self._db.executescript(_TABLES)

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            self._db.execute("BEGIN")
            yield self._db
            self._db.execute("COMMIT")

    def begin(self, bounds: Sequence[tuple[str, int]]) -> None:
        with self._transaction() as db:
            db.executemany("INSERT INTO progress VALUES (?, NULL, -1, 0, ?)", bounds)

    def insert(self, arrived: Arrived) -> None:
        with self._transaction() as db:
            db.executemany(f"INSERT INTO sink_row ({_SINK}) VALUES (?, ?, ?, ?, ?)", arrived.sinks)
            db.executemany(
                f"INSERT OR IGNORE INTO source_row ({_SOURCE}) VALUES (?, ?, ?, ?, ?, ?)",
                arrived.sources,
            )
            db.executemany(f"INSERT INTO edge ({_EDGE}) VALUES (?, ?, ?, ?, ?, ?)", arrived.edges)
            part = arrived.part
            db.execute(
                "UPDATE progress SET run = ?, last = ?, watermark = ? WHERE name = ?",
                (part.run, part.last, part.watermark_ms * 1000, part.writer),
            )

    def poll(self, step: int) -> Polled:
        with self._transaction() as db:
            progress = db.execute(f"SELECT {_PROGRESS} FROM progress").fetchall()
            sinks = db.execute(f"DELETE FROM sink_row RETURNING {_SINK}").fetchall()
            sources = db.execute(
                f"UPDATE source_row SET delivered = ? WHERE delivered IS NULL RETURNING {_SOURCE}",
                (step,),
            ).fetchall()
            edges = db.execute(f"DELETE FROM edge RETURNING {_EDGE}").fetchall()
            labels = db.execute(
                "DELETE FROM source_row WHERE labelled IS NULL AND time < "
                "(SELECT min(watermark - bound) FROM progress) RETURNING stream, a, b"
            ).fetchall()
        return Polled(progress, sinks, sources, edges, labels)

    def close(self) -> None:
        self._db.close()


class Postgres:
    """PostgreSQL. Rows are kept, with the step in which they were delivered."""

    def __init__(self, dsn: str) -> None:
        import psycopg

        self._writer = psycopg.connect(dsn)
        self._reader = psycopg.connect(dsn)
        # A poll must see one state of all tables.
        self._reader.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        with self._writer.transaction():
            self._writer.execute("DROP TABLE IF EXISTS progress, sink_row, source_row, edge")
            for statement in filter(str.strip, _TABLES.split(";")):
                self._writer.execute(statement)
        with self._writer.transaction():
            self._writer.execute(
                "CREATE TEMP TABLE IF NOT EXISTS arrived (stream TEXT, a BIGINT, b BIGINT, "
                "time BIGINT, segment TEXT, content TEXT) ON COMMIT DELETE ROWS"
            )

    def begin(self, bounds: Sequence[tuple[str, int]]) -> None:
        with self._writer.transaction(), self._writer.cursor() as db:
            db.executemany("INSERT INTO progress VALUES (%s, NULL, -1, 0, %s)", bounds)

    def insert(self, arrived: Arrived) -> None:
        with self._writer.transaction(), self._writer.cursor() as db:
            self._copy(db, f"sink_row ({_SINK})", arrived.sinks)
            self._copy(db, f"arrived ({_SOURCE})", arrived.sources)
            db.execute(
                f"INSERT INTO source_row ({_SOURCE}) SELECT {_SOURCE} FROM arrived "
                "ON CONFLICT DO NOTHING"
            )
            self._copy(db, f"edge ({_EDGE})", arrived.edges)
            part = arrived.part
            db.execute(
                "UPDATE progress SET run = %s, last = %s, watermark = %s WHERE name = %s",
                (part.run, part.last, part.watermark_ms * 1000, part.writer),
            )

    def _copy(self, db: Any, into: str, rows: Rows) -> None:
        with db.copy(f"COPY {into} FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)

    def poll(self, step: int) -> Polled:
        with self._reader.transaction(), self._reader.cursor() as db:
            progress = db.execute(f"SELECT {_PROGRESS} FROM progress").fetchall()
            sinks, sources, edges = (
                db.execute(
                    f"UPDATE {table} SET delivered = %s WHERE delivered IS NULL "
                    f"RETURNING {columns}",
                    (step,),
                ).fetchall()
                for table, columns in (
                    ("sink_row", _SINK),
                    ("source_row", _SOURCE),
                    ("edge", _EDGE),
                )
            )
            labels = db.execute(
                "UPDATE source_row SET labelled = %s WHERE labelled IS NULL AND time < "
                "(SELECT min(watermark - bound) FROM progress) RETURNING stream, a, b",
                (step,),
            ).fetchall()
        return Polled(progress, sinks, sources, edges, labels)

    def close(self) -> None:
        self._reader.close()
        self._writer.close()


class OnDemand:
    """Builds the graph of a store with a database that is polled.

    Args:
        root: The store.
        queries: The queries.
        database: The database, empty.
        every: Seconds between two polls; 0 for as often as can be.
        graph: The name of the graph whose files are written.
    """

    def __init__(
        self,
        root: Path,
        queries: Sequence[str],
        database: Database,
        every: float,
        graph: str = "live",
    ) -> None:
        self._store = Store(root)
        self._queries = tuple(queries)
        self._database = database
        self._every = every
        self._graph = graph
        self._taken: dict[str, dict[str, int]] = {}
        self._step = 0
        self._errors: list[BaseException] = []
        self._no_more, self._all_in = threading.Event(), threading.Event()
        streams = self._store.snapshot().streams
        database.begin(
            [(q, max(each["micros"] for each in streams[q].bounds.values())) for q in queries]
        )
        self._threads = [
            threading.Thread(target=self._watch, args=(work,), daemon=True)
            for work in (self._take_in, self._deliver)
        ]

    def start(self) -> OnDemand:
        """Begin to follow the queries."""
        for thread in self._threads:
            thread.start()
        return self

    def finish(self) -> None:
        """Deliver what is finished by now, and stop."""
        self._no_more.set()
        for thread in self._threads:
            thread.join()
        self._database.close()
        if self._errors:
            raise self._errors[0]

    def _watch(self, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 (raised again by `finish`)
            self._errors.append(error)
            self._no_more.set()
            self._all_in.set()

    def _take_in(self) -> None:
        db = connect()
        while True:
            ending = self._no_more.is_set()
            for arrived in self._arrivals(db):
                self._database.insert(arrived)
            if ending:
                break
            self._no_more.wait(_LOOK_EVERY)
        self._all_in.set()

    def _arrivals(self, db: Any) -> Iterator[Arrived]:
        """Read what is finished and was not taken in yet."""
        snapshot = self._store.snapshot()
        for query in self._queries:
            taken = self._taken.setdefault(query, {})
            for part in list(new_parts(snapshot, query, taken)):
                taken[part.run] = part.last
                yield self._read(db, snapshot, part)

    def _read(self, db: Any, snapshot: Snapshot, part: Part) -> Arrived:
        if not part.sink_rows:
            return Arrived(part, [], [], [])
        sources = {part.writer: frozenset(snapshot.streams[part.writer].sources)}
        gathered = Gathered(db, self._store.root, [part], sources)
        db.execute("CREATE OR REPLACE TEMP TABLE behind AS SELECT DISTINCT stream, a, b FROM edge")
        gathered.fetch_sources("behind")
        return Arrived(
            part,
            db.execute('SELECT stream, a, b, time, "row" FROM sink_row').fetchall(),
            db.execute('SELECT stream, a, b, time, segment, "row" FROM source_row').fetchall(),
            db.execute(f"SELECT {_EDGE} FROM edge").fetchall(),
        )

    def _deliver(self) -> None:
        while True:
            next_poll = time.monotonic() + self._every
            ending = self._all_in.is_set()
            found = self._database.poll(self._step)
            if found:
                self._write(found)
                self._step += 1
            if ending:
                return
            # Who polls by the clock does not know that nothing more will come.
            time.sleep(max(0.0, next_poll - time.monotonic()))

    def _write(self, found: Polled) -> None:
        at = min(watermark for _, _, _, watermark, _ in found.progress)
        taken = {name: {run: last} for name, run, last, _, _ in found.progress if run is not None}
        state = State(step=self._step, at_us=at, taken=taken)
        deliver(self._store.root, self._graph, state, _elements(found, at, self._step))


def _elements(found: Polled, at: int, step: int) -> pa.Table:
    names = ("stream", "a", "b")
    sink, source = (*names, "time", "row"), (*names, "time", "segment", "row")
    edge = ("sink", "sink_a", "sink_b", *names)
    blocks = (
        (VERTEX, SINK, sink, found.sinks),
        (VERTEX, SOURCE, source, found.sources),
        (EDGE, None, edge, found.edges),
        (LABEL, SINK, names, [row[:3] for row in found.sinks]),
        (LABEL, SOURCE, names, found.labels),
    )
    return pa.concat_tables(_block(*each, at, step) for each in blocks)


def _block(
    element: str, side: str | None, names: Sequence[str], rows: Rows, at: int, step: int
) -> pa.Table:
    count = len(rows)
    columns: dict[str, Any] = dict(zip(names, zip(*rows, strict=True), strict=True)) if rows else {}
    same = {"element": element, "side": side, "at": at, "step": step}
    columns |= {name: [value] * count for name, value in same.items()}
    arrays = []
    for part in SCHEMA:
        values = columns.get(part.name)
        kind = pa.int64() if pa.types.is_timestamp(part.type) else part.type
        made = pa.nulls(count, kind) if values is None else pa.array(values, kind)
        arrays.append(made.cast(part.type))
    return pa.table(arrays, schema=SCHEMA)
