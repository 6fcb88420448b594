"""The edges of rows: one join, over files or over memory.

A query that runs for a day leaves thousands of small files, and opening them is what takes the
time. So a reader that is asked more than once keeps the edges of small files in memory, as numbers
only: committed files never change, hence what was loaded stays right. A reader that is asked once,
as from a shell, reads the files and loads nothing.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from clew.store.engine import as_pattern, literal

if TYPE_CHECKING:
    from collections.abc import Iterable

    from clew.store.engine import Engine, Session
    from clew.store.reader import Files

COLUMNS = ("sink", "sink_a", "sink_b", "source", "source_a", "source_b")
MAX_EDGES_PER_BATCH = 100_000
"""Batches with more edges are read from their files, where row groups can be skipped."""
MAX_EDGES_HELD = 5_000_000
"""How many edges are kept in memory, at about 40 bytes each."""

_TYPES = (pa.string(), pa.int64(), pa.int64()) * 2
_FOUND = pa.schema([*zip(COLUMNS, _TYPES, strict=True), ("place", pa.int64())])


class EdgeReader:
    """Finds the edges of rows among committed files; may be used from several threads."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._lock = threading.Lock()
        self._questions = 0
        self._forget()

    def _forget(self) -> None:
        self._generation = self._engine.generation
        self._numbers: dict[str, int] = {}
        self._paths: list[str] = []
        self._names: list[str] = []
        self._held = 0

    def begin(self) -> None:
        """Note that a question is asked."""
        self._questions += 1
        with self._lock:
            if self._generation != self._engine.generation:
                self._forget()

    def join(
        self,
        session: Session,
        files: Files,
        near: str,
        rows: pa.Table,
        ways: Iterable[str] | None = None,
    ) -> pa.Table:
        """Find the edges of rows.

        Args:
            session: The cursor to use.
            files: The committed files to look in.
            near: The side of the edges that the rows stand on, `sink` or `source`.
            rows: The rows, in columns `stream`, `a` and `b`, each once.
            ways: The streams that may stand on the other side; None for any.

        Returns:
            The edges, in the columns of `COLUMNS`, and as `place` each one's file in `files`.

        Raises:
            StoreError: A file is gone or damaged.
        """
        if self._questions > 1:
            self._load(files)
        far = "source" if near == "sink" else "sink"
        wanted = None if ways is None else sorted(ways)
        unread = [i for i, path in enumerate(files.paths) if path not in self._numbers]
        parts = [_FOUND.empty_table()]
        if len(unread) < len(files.paths):
            parts.append(self._join_held(session, files, near, far, rows, wanted))
        if unread:
            parts.append(_join_files(session, files, unread, near, far, rows, wanted))
        return pa.concat_tables(parts)

    def _load(self, files: Files) -> None:
        """Take the edges of small files into memory, as far as there is room."""
        with self._lock:
            new: list[str] = []
            room = MAX_EDGES_HELD - self._held
            for path, batch in zip(files.paths, files.batches, strict=True):
                if path in self._numbers or batch.edges is None:
                    continue
                if batch.edges <= min(MAX_EDGES_PER_BATCH, room):
                    new.append(path)
                    room -= batch.edges
            if new:
                self._insert(new)
                self._held = MAX_EDGES_HELD - room

    def _insert(self, paths: list[str]) -> None:
        with self._engine.session() as session:
            session.execute(
                "CREATE TEMP TABLE fresh AS SELECT sink, sink_a, sink_b, source, source_a, "
                "source_b, CAST(file_index AS INTEGER) AS file_index "
                "FROM read_parquet($paths, hive_partitioning = false)",
                {"paths": [as_pattern(each) for each in paths]},
            )
            met = session.table("SELECT sink AS name FROM fresh UNION SELECT source FROM fresh")
            # Readers hold on to the list they began with, so it is replaced and not changed.
            new = set(met.column("name").to_pylist()) - set(self._names)
            names = [*self._names, *sorted(new)]
            session.execute(
                "CREATE TABLE IF NOT EXISTS held (sink INTEGER, sink_a BIGINT, sink_b BIGINT, "
                "source INTEGER, source_a BIGINT, source_b BIGINT, file INTEGER)"
            )
            session.execute(
                "INSERT INTO held SELECT list_position($names, sink), sink_a, sink_b, "
                "list_position($names, source), source_a, source_b, $first + file_index FROM fresh",
                {"names": names, "first": len(self._paths)},
            )
        self._names = names
        first = len(self._paths)
        self._paths += paths
        self._numbers.update({path: first + i for i, path in enumerate(paths)})

    def _join_held(
        self,
        session: Session,
        files: Files,
        near: str,
        far: str,
        rows: pa.Table,
        ways: list[str] | None,
    ) -> pa.Table:
        names = self._names
        streams = pc.index_in(rows.column("stream"), value_set=pa.array(names, pa.string()))
        session.register("near_rows", rows.set_column(0, "stream", pc.add(streams, 1)))
        numbers = [str(i + 1) for i, name in enumerate(names) if ways is None or name in ways]
        found = session.table(
            "SELECT $names[e.sink] AS sink, e.sink_a, e.sink_b, "
            "$names[e.source] AS source, e.source_a, e.source_b, e.file "
            f"FROM held e JOIN near_rows n ON {_on(near)} "
            f"WHERE e.{far} IN ({', '.join(numbers) or 'NULL'})",
            {"names": names},
        )
        # Memory may hold files of other writers, and of batches committed since or pruned.
        places = [files.places.get(self._paths[i]) for i in found.column("file").to_pylist()]
        column = pa.array(places, pa.int64())
        found = found.set_column(6, "place", column)
        return found.filter(pc.is_valid(column)).cast(_FOUND)


def _join_files(
    session: Session,
    files: Files,
    unread: list[int],
    near: str,
    far: str,
    rows: pa.Table,
    ways: list[str] | None,
) -> pa.Table:
    session.register("near_rows", rows)
    among = "" if ways is None else f"WHERE e.{far} IN ({', '.join(map(literal, ways)) or 'NULL'})"
    found = session.table(
        f"SELECT {', '.join(f'e.{name}' for name in COLUMNS)}, e.file_index "
        "FROM read_parquet($paths, hive_partitioning = false) e "
        f"JOIN near_rows n ON {_on(near)} {among}",
        {"paths": [as_pattern(files.paths[i]) for i in unread]},
    )
    places = [unread[i] for i in found.column("file_index").to_pylist()]
    return found.set_column(6, "place", pa.array(places, pa.int64())).cast(_FOUND)


def _on(near: str) -> str:
    return f"e.{near}_a = n.a AND e.{near}_b = n.b AND e.{near} = n.stream"
