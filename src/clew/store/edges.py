"""The edges of rows: one join, over files or over memory.

A query that runs for a day leaves thousands of small files, and opening them is what takes the
time. So a reader that is asked more than once keeps the edges of small files in memory, as numbers
only: committed files never change, hence what was loaded stays right. A reader that is asked once,
as from a shell, reads the files and loads nothing. Of packed files DuckDB finds the sets that may
hold an edge, and only those are unpacked.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from clew.exceptions import StoreError
from clew.limits import BYTES_PER_EDGE, check_bytes, check_edges, check_time, current
from clew.store.engine import as_pattern, literal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from clew.store.engine import Engine, Session
    from clew.store.reader import Files

COLUMNS = ("sink", "sink_a", "sink_b", "source", "source_a", "source_b")
MAX_EDGES_PER_BATCH = 100_000
"""Batches with more edges are read from their files, where row groups can be skipped."""
MAX_EDGES_HELD = 5_000_000
"""How many edges are kept in memory, at about 40 bytes each."""
MAX_FILES_HELD = 50_000
"""Of how many files; the others are read when they are needed."""

_TYPES = (pa.string(), pa.int64(), pa.int64()) * 2
EDGES = pa.schema(list(zip(COLUMNS, _TYPES, strict=True)))
"""What a file of edges holds, unless it is packed."""
_FOUND = EDGES.append(pa.field("place", pa.int64()))
_FILES = "read_parquet($paths, hive_partitioning = false)"
_NEAR_SETS = {
    "sink": "near_rows n ON e.sink_a = n.a AND e.sink_b = n.b AND e.sink = n.stream",
    # One row per segment, so that the join stays small when many rows of one are asked for.
    "source": (
        "(SELECT stream, a, min(b) AS first, max(b) AS last FROM near_rows GROUP BY stream, a) n "
        "ON e.source_a = n.a AND e.source = n.stream AND e.lo <= n.last "
        'AND coalesce(e.hi, e.lo + (e."count" - 1)) >= n.first'
    ),
}
_T = TypeVar("_T")


def is_packed(path: str) -> bool:
    """Say whether a file of edges is in packed form, by its name.

    Examples:
        >>> is_packed("/prov/edges/stopped/3f2a90bc-0000000007/packed-0.parquet")
        True
    """
    return path.rpartition("/")[2].startswith("packed-")


@dataclass(slots=True)
class _Memory:
    """What one DuckDB holds of the edges; it only grows.

    Attributes:
        generation: Which DuckDB it is.
        numbers: The files whose edges are held, each with its number.
        paths: The same files by number.
        names: The streams by number; the list is replaced, so that readers may keep theirs.
        edges: How many edges are held.
    """

    generation: int
    numbers: dict[str, int] = field(default_factory=dict)
    paths: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    edges: int = 0


class EdgeReader:
    """Finds the edges of rows among committed files; may be used from several threads."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._lock = threading.Lock()
        self._questions = 0
        self._memory = _Memory(engine.generation)

    def begin(self) -> None:
        """Note that a question is asked."""
        self._questions += 1

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
        memory = self._memory
        if memory.generation != session.generation:
            memory = _Memory(session.generation)  # DuckDB was started anew since the question began
        # Another thread may be loading: what it adds from here on counts as not loaded.
        count, numbers = len(memory.paths), memory.numbers
        far = "source" if near == "sink" else "sink"
        wanted = None if ways is None else sorted(ways)
        unread = [i for i, path in enumerate(files.paths) if numbers.get(path, count) >= count]
        packed, raw = _part(unread, lambda i: is_packed(files.paths[i]))
        parts = [_FOUND.empty_table()]
        if len(unread) < len(files.paths):
            parts.append(_join_held(session, memory, count, files, near, far, rows, wanted))
        if raw:
            parts.append(_join_raw(session, files, raw, near, far, rows, wanted))
        if packed:
            parts.append(_join_packed(session, files, packed, near, far, rows, wanted))
        return pa.concat_tables(parts)

    def _load(self, files: Files) -> None:
        """Take the edges of small files into memory, as far as there is room."""
        with self._lock, self._engine.session() as session:
            if self._memory.generation != session.generation:
                self._memory = _Memory(session.generation)
            memory = self._memory
            new: list[str] = []
            most = min(MAX_EDGES_HELD, current().bytes // BYTES_PER_EDGE)
            room = most - memory.edges
            files_left = MAX_FILES_HELD - len(memory.paths)
            for path, batch in zip(files.paths, files.batches, strict=True):
                if path in memory.numbers or batch.edges is None:
                    continue
                if len(new) < files_left and batch.edges <= min(MAX_EDGES_PER_BATCH, room):
                    new.append(path)
                    room -= batch.edges
            if new:
                _insert(session, memory, new)
                memory.edges = most - room


def _insert(session: Session, memory: _Memory, new: list[str]) -> None:
    packed, raw = _part(new, is_packed)
    paths = [*raw, *packed]
    session.execute(
        "CREATE TEMP TABLE fresh (sink VARCHAR, sink_a BIGINT, sink_b BIGINT, "
        "source VARCHAR, source_a BIGINT, source_b BIGINT, file_index INTEGER)"
    )
    if raw:
        session.execute(
            f"INSERT INTO fresh SELECT {', '.join(COLUMNS)}, file_index FROM {_FILES}",
            {"paths": [as_pattern(each) for each in raw]},
        )
    if packed:
        session.register("unpacked", _unpack_files(session, packed))
        session.execute(
            f"INSERT INTO fresh SELECT {', '.join(COLUMNS)}, $first + file_index FROM unpacked",
            {"first": len(raw)},
        )
    met = session.table("SELECT sink AS name FROM fresh UNION SELECT source FROM fresh")
    names = [*memory.names, *sorted(set(met.column("name").to_pylist()) - set(memory.names))]
    session.execute(
        "CREATE TABLE IF NOT EXISTS held (sink INTEGER, sink_a BIGINT, sink_b BIGINT, "
        "source INTEGER, source_a BIGINT, source_b BIGINT, file INTEGER)"
    )
    session.execute(
        "INSERT INTO held SELECT list_position($names, sink), sink_a, sink_b, "
        "list_position($names, source), source_a, source_b, $first + file_index FROM fresh",
        {"names": names, "first": len(memory.paths)},
    )
    # Names come before files, and files before their numbers: whoever sees the one sees the other.
    memory.names = names
    first = len(memory.paths)
    memory.paths += paths
    memory.numbers.update({path: first + i for i, path in enumerate(paths)})


def _join_held(
    session: Session,
    memory: _Memory,
    count: int,
    files: Files,
    near: str,
    far: str,
    rows: pa.Table,
    ways: list[str] | None,
) -> pa.Table:
    names = memory.names
    streams = pc.index_in(rows.column("stream"), value_set=pa.array(names, pa.string()))
    session.register("near_rows", rows.set_column(0, "stream", pc.add(streams, 1)))
    numbers = [str(i + 1) for i, name in enumerate(names) if ways is None or name in ways]
    found = session.table(
        "SELECT $names[e.sink] AS sink, e.sink_a, e.sink_b, "
        "$names[e.source] AS source, e.source_a, e.source_b, e.file "
        f"FROM held e JOIN near_rows n ON {_on(near)} "
        f"WHERE e.file < $count AND e.{far} IN ({', '.join(numbers) or 'NULL'})",
        {"names": names, "count": count},
    )
    # Memory may hold files of other writers, and of batches committed since or pruned.
    places = [files.places.get(memory.paths[i]) for i in found.column("file").to_pylist()]
    column = pa.array(places, pa.int64())
    found = found.set_column(6, "place", column)
    return found.filter(pc.is_valid(column)).cast(_FOUND)


def _join_raw(
    session: Session,
    files: Files,
    places: list[int],
    near: str,
    far: str,
    rows: pa.Table,
    ways: list[str] | None,
) -> pa.Table:
    session.register("near_rows", rows)
    found = session.table(
        f"SELECT {', '.join(f'e.{name}' for name in COLUMNS)}, e.file_index "
        f"FROM {_FILES} e JOIN near_rows n ON {_on(near)} {_among(far, ways)}",
        {"paths": [as_pattern(files.paths[i]) for i in places]},
    )
    return _with_places(found, places)


def _join_packed(
    session: Session,
    files: Files,
    places: list[int],
    near: str,
    far: str,
    rows: pa.Table,
    ways: list[str] | None,
) -> pa.Table:
    from clew.store.packed import unpack_rows

    session.register("near_rows", rows)
    paths = [files.paths[i] for i in places]
    hits = session.table(
        f"SELECT e.file_index, e.file_row_number FROM {_FILES} e "
        f"JOIN {_NEAR_SETS[near]} {_among(far, ways)}",
        {"paths": [as_pattern(each) for each in paths]},
    )
    # Backward, all of a set is asked for.
    positions = None if near == "sink" else rows.column("b").to_numpy()
    parts, unpacked = [], 0
    numbers = hits.group_by("file_index").aggregate([("file_row_number", "list")])
    for file, chosen in zip(*numbers.to_pydict().values(), strict=True):
        edges = unpack_rows(paths[file], chosen, positions)
        unpacked += edges.num_rows
        check_edges(unpacked)
        check_time()
        parts.append(edges.append_column("file_index", pa.repeat(file, edges.num_rows)))
    if not parts:
        return _FOUND.empty_table()
    session.register("unpacked", pa.concat_tables(parts))
    found = session.table(
        f"SELECT {', '.join(f'e.{name}' for name in COLUMNS)}, e.file_index "
        f"FROM unpacked e JOIN near_rows n ON {_on(near)}"
    )
    return _with_places(found, places)


def _unpack_files(session: Session, paths: list[str]) -> pa.Table:
    """Return all edges of packed files, with the place of each edge's file as `file_index`."""
    from clew.store.packed import read_edges, unpack

    named = {"paths": [as_pattern(each) for each in paths]}
    try:
        _measure(session, named)
        # Files after one another, each in its own order: a set still follows the one it builds on.
        packed = session.table(
            f"SELECT *, file_index FROM {_FILES} ORDER BY file_index, file_row_number", named
        )
        return unpack(packed)
    except StoreError:
        for path in paths:
            read_edges(Path(path))  # raises for the one that is damaged, and names it
        raise


def _measure(session: Session, named: dict[str, list[str]]) -> None:
    """See that packed files have room in memory: a small one may name a long text in many rows."""
    from clew.store.packed import LONGEST_NAME, damaged

    sizes = session.table(
        "SELECT count(*) AS sets, coalesce(sum(octet_length(payload)), 0)::DOUBLE AS bytes, "
        f"coalesce(max(greatest(strlen(sink), strlen(source))), 0) AS longest FROM {_FILES}",
        named,
    ).to_pylist()[0]
    check_edges(sizes["sets"])
    check_bytes(sizes["bytes"])
    if sizes["longest"] > LONGEST_NAME:
        raise damaged()


def _with_places(found: pa.Table, places: list[int]) -> pa.Table:
    column = pc.take(pa.array(places, pa.int64()), found.column("file_index"))
    return found.set_column(6, "place", column).cast(_FOUND)


def _part(items: list[_T], is_first: Callable[[_T], bool]) -> tuple[list[_T], list[_T]]:
    """Part items into those that are something and those that are not."""
    parts: tuple[list[_T], list[_T]] = ([], [])
    for each in items:
        parts[0 if is_first(each) else 1].append(each)
    return parts


def _among(far: str, ways: list[str] | None) -> str:
    return "" if ways is None else f"WHERE e.{far} IN ({', '.join(map(literal, ways)) or 'NULL'})"


def _on(near: str) -> str:
    return f"e.{near}_a = n.a AND e.{near}_b = n.b AND e.{near} = n.stream"
