"""Lay out what one job computed: edges to their folder, the rows at their ends to theirs.

A Spark job that writes edges and the content of source rows in one go saves computing them twice.
Taking the two apart is a matter of columns, which needs no further job as long as they fit in
memory.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from clew.store.private import make_folder
from clew.store.schema import normal
from clew.store.spill import database

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence
    from pathlib import Path

_IDS = ["source_a", "source_b"]


@dataclass(frozen=True, slots=True)
class Draft:
    """What a job computed: a table if it is little, else a folder of files."""

    folder: Path
    table: pa.Table | None = None

    def count(self) -> int:
        """Return how many rows it has."""
        return rows_in(self.folder) if self.table is None else int(self.table.num_rows)

    def read(self, columns: list[str] | None = None) -> pa.Table:
        """Return the rows, or some of their columns, with the types that the store promises."""
        return pa.concat_tables(self.parts(columns))

    def parts(self, columns: list[str] | None = None) -> Iterator[pa.Table]:
        """Return the rows piece by piece, as they are in memory or in files."""
        if self.table is not None:
            yield _promised(self.table if columns is None else self.table.select(columns))
            return
        for path in _files(self.folder):
            yield _read(path, columns)

    def drop(self) -> None:
        """Let go of the files, if there are any."""
        if self.table is None:
            shutil.rmtree(self.folder)


def split_draft(
    draft: Draft, sink: str, source: str, edges_to: Path, rows_to: Path, *, apart: bool = False
) -> int:
    """Split a draft with `sink_a`, `sink_b`, `source_a`, `source_b` and `content`.

    Args:
        draft: What the job computed; an edge may be in it several times.
        sink: The stream of the results.
        source: The stream at the other end.
        edges_to: A new folder for the edges, each once.
        rows_to: A new folder for the source rows, each once.
        apart: Different source rows may have one id: keep them all.

    Returns:
        The number of edges.
    """
    table = draft.read()
    count = _put_edges(table, sink, source, edges_to)
    once = _once(table, _IDS, "content" if apart else None)
    content = once.column("content").combine_chunks()
    fields = {content.type.field(i).name: each for i, each in enumerate(content.flatten())}
    rows = {"a": once.column("source_a"), "b": once.column("source_b"), **fields}
    put_table(pa.table(rows), rows_to)
    return count


def split_ends(draft: Draft, sink: str, source: str, edges_to: Path) -> tuple[int, pa.Table]:
    """Lay out the edges of a draft that has no content.

    Returns:
        The number of edges, and the ids `a`, `b` of the source rows, each once.
    """
    table = draft.read(["sink_a", "sink_b", *_IDS])
    return _put_edges(table, sink, source, edges_to), _ends(table)


def ends_of(draft: Draft) -> pa.Table:
    """Return the ids `a`, `b` of the source rows in a draft, each once."""
    return _ends(draft.read(_IDS))


def _ends(table: pa.Table) -> pa.Table:
    return table.select(_IDS).group_by(_IDS).aggregate([]).rename_columns(["a", "b"])


def _put_edges(table: pa.Table, sink: str, source: str, folder: Path) -> int:
    """Write the edges of a draft, each once; return how many there are."""
    ids = ["sink_a", "sink_b", *_IDS]
    ends = table.select(ids).group_by(ids).aggregate([])
    ends = ends.sort_by([(name, "ascending") for name in ids])
    put_table(_edges(sink, source, [ends[name] for name in ids]), folder)
    return int(ends.num_rows)


@dataclass(frozen=True, slots=True)
class Parts:
    """Edges, and the source rows at their ends by stream, each once."""

    edges: pa.Table
    rows: dict[str, pa.Table]


def split_carried(
    draft: Path, sink: str, prefix: str, most: int, apart: Collection[str] = ()
) -> Parts | None:
    """Split rows that carry their source rows in arrays; None if that should be left to Spark.

    Args:
        draft: The folder with the rows: `_clew_a`, `_clew_b` and an array per stream.
        sink: The stream of the results.
        prefix: How the names of the arrays begin.
        most: How many edges may be in memory.
        apart: The streams of which different rows may have one id: all are kept.
    """
    files = _files(draft)
    names = [n for n in pq.read_schema(files[0]).names if n.startswith(prefix)]
    if sum(_values(path) for path in files) > most * max(1, len(names)):
        return None
    table = pa.concat_tables([_read(f) for f in files]).combine_chunks()
    edges, rows = [], {}
    for name in names:
        array = table[name].combine_chunks()
        elements = array.flatten()
        if elements.type.get_field_index("from") >= 0:
            return None
        parents = pc.list_parent_indices(array)
        fields = {f.name: pc.struct_field(elements, f.name) for f in elements.type}
        stream = name.removeprefix(prefix)
        sinks = [table[name].take(parents) for name in ("_clew_a", "_clew_b")]
        edges.append(_edges(sink, stream, [*sinks, fields["a"], fields["b"]]))
        if "row" not in fields:
            nothing = pa.nulls(len(elements), pa.string())
            fields["row"] = pa.StructArray.from_arrays([nothing], ["_"])
        rows[stream] = _once(pa.table(fields), ["a", "b"], "row" if stream in apart else None)
    return Parts(pa.concat_tables(edges), rows)


def _read(path: Path, columns: list[str] | None = None) -> pa.Table:
    """Read a file that Spark may have written, with the types that the store promises."""
    table = pq.read_table(
        path, columns=columns, partitioning=None, coerce_int96_timestamp_unit="us"
    )
    # The file's own types tell points in time (INT96) from times without a zone; the table's,
    # which are in microseconds already, do not.
    own = pq.read_schema(path)
    kinds = [pa.field(name, normal(own.field(name).type)) for name in table.column_names]
    return table.cast(pa.schema(kinds))


def _promised(table: pa.Table) -> pa.Table:
    return table.cast(pa.schema([pa.field(f.name, normal(f.type)) for f in table.schema]))


def rows_in(folder: Path) -> int:
    """Count the rows of the Parquet files in a folder, by their footers."""
    return sum(pq.read_metadata(p).num_rows for p in _files(folder))


def _edges(sink: str, source: str, ends: Sequence[Any]) -> pa.Table:
    """Name both ends of edges whose ids are given: the sink's halves, then the source's."""
    sink_a, sink_b, source_a, source_b = ends
    count = len(source_a)
    return pa.table(
        {
            "sink": pa.array([sink] * count, pa.string()),
            "sink_a": sink_a,
            "sink_b": sink_b,
            "source": pa.array([source] * count, pa.string()),
            "source_a": source_a,
            "source_b": source_b,
        }
    )


def _values(path: Path) -> int:
    """Count the values of a file's longest column: no array has more elements."""
    meta = pq.read_metadata(path)
    return sum(
        max(meta.row_group(g).column(c).num_values for c in range(meta.num_columns))
        for g in range(meta.num_row_groups)
    )


def _once(table: pa.Table, ids: list[str], row: str | None = None) -> pa.Table:
    """Keep the first of the rows that share an id, or of those that are equal in a column, too."""
    if row is not None:
        with database() as con:
            con.register("found", table.append_column("_at", pa.array(range(table.num_rows))))
            keys = ", ".join([*ids, f'hash("{row}")'])
            ats = con.sql(f"SELECT min(_at) FROM found GROUP BY {keys} ORDER BY 1").fetchall()
        return table.take(pa.array([at for (at,) in ats], pa.int64()))
    numbered = table.select(ids).append_column("at", pa.array(range(table.num_rows), pa.int64()))
    return table.take(numbered.group_by(ids).aggregate([("at", "min")]).column("at_min"))


def ids_in(files: Iterable[Path], a: str, b: str) -> set[tuple[int, int]]:
    """Read the ids that stand in two columns of some files, each once."""
    found: set[tuple[int, int]] = set()
    for path in files:
        table = pq.read_table(path, columns=[a, b], partitioning=None)
        found |= pairs(table.group_by([a, b]).aggregate([]), a, b)
    return found


def missing(ids: pa.Table, found: Iterable[pa.Table]) -> tuple[int, int]:
    """Count how many different ids there are, and how many of them are found nowhere.

    Args:
        ids: Two columns with the halves of ids.
        found: Tables with such columns, in the same order.
    """
    names = ["a", "b"]
    wanted = ids.rename_columns(names).group_by(names).aggregate([])
    count = wanted.num_rows
    for each in found:
        there = each.rename_columns(names).group_by(names).aggregate([])
        wanted = wanted.join(there, names, join_type="left anti")
    return count, wanted.num_rows


def pairs(table: pa.Table, a: str, b: str) -> set[tuple[int, int]]:
    """Return the ids that stand in two columns of a table."""
    return set(zip(table[a].to_pylist(), table[b].to_pylist(), strict=True))


def merge_folders(folder: Path) -> None:
    """Move the files of a folder's folders into it."""
    for inner in sorted(p for p in folder.iterdir() if p.is_dir()):
        for number, path in enumerate(_files(inner)):
            path.rename(folder / f"{inner.name}-{number}.parquet")
        for rest in inner.iterdir():
            rest.unlink()
        inner.rmdir()


def put_table(table: pa.Table, folder: Path) -> None:
    """Write a table as the one file of a folder."""
    make_folder(folder)
    pq.write_table(table, folder / "part-0.parquet", compression="snappy")


def _files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.parquet"))
