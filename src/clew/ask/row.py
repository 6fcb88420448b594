"""Rows of an answer: their identity and, where the store has it, their content.

`Rows` keeps Arrow tables, one per stream, and makes `Row` objects only for what is looked at, so an
answer with a million rows costs what one looks at. A `Row` is a mapping of the user's own
columns; what clew knows besides is in attributes, where no column's name can collide with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload

import pyarrow as pa

from clew import show
from clew.model import RowId
from clew.show.arrow import id_texts, to_frame, to_python
from clew.show.labels import short_labels
from clew.store.schema import merge, sql_type

if TYPE_CHECKING:
    import datetime as dt

    import pandas as pd

HIDDEN = ("_clew_a", "_clew_b", "_clew_segment", "_clew_time", "_clew_known")
"""The columns of a content table that are not the user's."""

OURS = ("stream", "id", "segment", "position", "time")
"""The columns that clew puts in front of the user's in `to_arrow` and `to_pandas`."""

_CHUNK = 1024


class Row(Mapping[str, Any]):
    """One row: the user's columns as a mapping, its identity as attributes.

    Attributes:
        id: The row's id.
        segment: The file or topic-partition a source row came from; None for a derived row.
        position: Where in the segment it stands; None where rows are not numbered.
        time: The event time in UTC, where the stream has one.
        known: Whether the store holds the row's content. If not, the mapping is empty.
    """

    __slots__ = ("_values", "id", "known", "position", "segment", "time")

    def __init__(
        self,
        id: RowId,
        values: Mapping[str, Any],
        *,
        segment: str | None = None,
        position: int | None = None,
        time: dt.datetime | None = None,
        known: bool = True,
    ) -> None:
        self.id = id
        self._values = dict(values)
        self.segment = segment
        self.position = position
        self.time = time
        self.known = known

    @property
    def stream(self) -> str:
        """The stream the row belongs to."""
        return self.id.stream

    @property
    def label(self) -> str:
        """The row's id in the form that is easiest to read and can be asked with."""
        if self.position is None:
            return self.id.text
        return f"{self.segment}:{self.position}"

    def __getitem__(self, column: str) -> Any:
        return self._values[column]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Row):
            return self.id == other.id and self._values == other._values
        return isinstance(other, Mapping) and self._values == dict(other)

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        values = ", ".join(f"{show.escape(k)}={show.cell(v)}" for k, v in self._values.items())
        return f"Row({show.escape(self.id.stream)}/{show.escape(self.label)}: {values})"

    def _repr_html_(self) -> str:
        from clew.show.page import row_page

        return row_page(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the row as plain data that JSON can hold."""
        return {
            "stream": self.stream,
            "id": self.id.text,
            "segment": self.segment,
            "position": self.position,
            "time": None if self.time is None else show.iso(self.time),
            "row": show.plain(self._values) if self.known else None,
        }


@dataclass(frozen=True, eq=False)
class Content:
    """Rows of one stream as an Arrow table.

    Attributes:
        stream: The stream.
        table: The columns of `HIDDEN`, then the user's.
        numbered: Whether the second half of an id is a position that people can read.
        unlike: How many of the ids stand for several rows that differ.
    """

    stream: str
    table: pa.Table
    numbered: bool
    unlike: int = 0

    @property
    def columns(self) -> list[str]:
        """The user's columns."""
        return [name for name in self.table.column_names if name not in HIDDEN]

    def ids(self) -> list[RowId]:
        """Return the ids of the rows, in order."""
        pairs = (self.table.column(name).to_pylist() for name in HIDDEN[:2])
        return [RowId(self.stream, a, b) for a, b in zip(*pairs, strict=True)]

    def pick(self, places: Sequence[int]) -> list[Row]:
        """Make row objects of some rows."""
        chosen = self.table.take(pa.array(places, pa.int64()))
        values = {name: to_python(chosen.column(name)) for name in chosen.column_names}
        return [self._row(i, values) for i in range(len(places))]

    def _row(self, i: int, values: Mapping[str, list[Any]]) -> Row:
        known = values["_clew_known"][i]
        segment = values["_clew_segment"][i]
        return Row(
            RowId(self.stream, values["_clew_a"][i], values["_clew_b"][i]),
            {name: values[name][i] for name in self.columns} if known else {},
            segment=segment,
            position=values["_clew_b"][i] if self.numbered and segment is not None else None,
            time=values["_clew_time"][i],
            known=known,
        )


class Rows(Sequence[Row]):
    """Rows in order: by time, then stream, then id, unless another order was asked for.

    Attributes:
        total: How many rows there are in the store, of which these are some.
        offset: How many of them come before these.
    """

    def __init__(
        self, contents: Sequence[Content], total: int | None = None, offset: int = 0
    ) -> None:
        self._contents = tuple(each for each in contents if each.table.num_rows)
        self._given = tuple(contents)
        self._order = _order(self._contents)
        self.total = len(self._order) if total is None else total
        self.offset = offset

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams that the rows belong to, in alphabetical order."""
        return tuple(sorted(each.stream for each in self._contents))

    @property
    def contents(self) -> tuple[Content, ...]:
        """The rows as Arrow tables, one for each stream that has some."""
        return self._contents

    def of(self, stream: str) -> Rows:
        """Return the rows of one stream only."""
        return Rows([each for each in self._contents if each.stream == stream])

    def first(self, limit: int | None = None) -> list[Content]:
        """Return the first rows as Arrow tables, one for each stream that has some of them."""
        shown = self._order[:limit]
        places = [[i for part, i in shown if part == n] for n in range(len(self._contents))]
        return [
            Content(each.stream, each.table.take(pa.array(chosen, pa.int64())), each.numbered)
            for each, chosen in zip(self._contents, places, strict=True)
            if chosen
        ]

    def ids(self) -> list[RowId]:
        """Return the ids of the rows, in order."""
        ids = [each.ids() for each in self._contents]
        return [ids[part][i] for part, i in self._order]

    def at(self, places: Sequence[int]) -> list[Row]:
        """Return the rows at some positions."""
        return self._pick([self._order[i] for i in places])

    def __len__(self) -> int:
        return len(self._order)

    def __iter__(self) -> Iterator[Row]:
        for start in range(0, len(self), _CHUNK):
            yield from self._pick(self._order[start : start + _CHUNK])

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> list[Row]: ...
    def __getitem__(self, index: int | slice) -> Row | list[Row]:
        if isinstance(index, slice):
            return self._pick(self._order[index])
        return self._pick([self._order[index]])[0]

    def _pick(self, places: Sequence[tuple[int, int]]) -> list[Row]:
        found: dict[tuple[int, int], Row] = {}
        for part, content in enumerate(self._contents):
            here = [i for which, i in places if which == part]
            found.update(zip(((part, i) for i in here), content.pick(here), strict=True))
        return [found[place] for place in places]

    def to_arrow(self) -> pa.Table:
        """Return the rows as an Arrow table.

        The first columns are `stream`, `id`, `segment`, `position` and `time`; the user's
        follow. A user's column with one of those names is called `row.<name>`.
        """
        columns = _merged_columns(self._given)
        tables = [_table(each, columns) for each in self._given] or [_empty()]
        starts = [0]
        for each in self._contents:
            starts.append(starts[-1] + each.table.num_rows)
        order = [starts[part] + i for part, i in self._order]
        return pa.concat_tables(tables).take(pa.array(order, pa.int64()))

    def to_pandas(self) -> pd.DataFrame:
        """Return the rows as a pandas DataFrame, with the columns of `to_arrow`."""
        return to_frame(self.to_arrow())

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return the rows as plain data that JSON can hold."""
        return [row.to_dict() for row in self]

    def to_dict(self) -> dict[str, Any]:
        """Return the rows, how many there are, and the types of their columns, as plain data."""
        return {
            "rows": self.to_dicts(),
            "total": self.total,
            "left_out": max(0, self.total - self.offset - len(self)),
            "offset": self.offset,
            "columns": [
                {"name": name, "type": sql_type(dtype)}
                for name, dtype in _merged_columns(self._given).items()
            ],
        }

    def lines(self, limit: int | None = 20, hint: str = "") -> list[show.Line]:
        """Show the rows as an aligned table.

        Args:
            limit: At most so many rows; None for all.
            hint: What to say behind the number of rows left out.
        """
        shown = self[:limit]
        left = max(0, self.total - self.offset - len(shown))
        lines = _show(shown, self._given)
        if left:
            lines.append(show.Line("note", f"and {left:,} more{hint}"))
        return lines

    def __repr__(self) -> str:
        return show.join(self.lines())

    def _repr_html_(self) -> str:
        from clew.show.page import rows_page

        return rows_page(self)


def _order(contents: Sequence[Content]) -> list[tuple[int, int]]:
    if len(contents) == 1:
        return [(0, i) for i in range(contents[0].table.num_rows)]
    keys = [
        pa.table(
            {
                "time": each.table.column("_clew_time"),
                "stream": pa.array([each.stream] * each.table.num_rows, pa.string()),
                "a": each.table.column("_clew_a"),
                "b": each.table.column("_clew_b"),
                "part": pa.array([part] * each.table.num_rows, pa.int64()),
                "i": pa.array(range(each.table.num_rows), pa.int64()),
            }
        )
        for part, each in enumerate(contents)
    ]
    if not keys:
        return []
    by = [(name, "ascending") for name in ("time", "stream", "a", "b")]
    ordered = pa.concat_tables(keys).sort_by(by)
    return list(zip(*(ordered.column(name).to_pylist() for name in ("part", "i")), strict=True))


def _merged_columns(contents: Sequence[Content]) -> dict[str, pa.DataType]:
    types: dict[str, list[pa.DataType]] = {}
    for each in contents:
        for name in each.columns:
            types.setdefault(name, []).append(each.table.schema.field(name).type)
    return {name: merge(found) for name, found in types.items()}


def _table(content: Content, columns: Mapping[str, pa.DataType]) -> pa.Table:
    table = content.table
    a, b = (table.column(name).to_pylist() for name in HIDDEN[:2])
    segment = table.column("_clew_segment")
    numbers = b if content.numbered else [None] * len(b)
    positions = [
        n if s is not None else None for n, s in zip(numbers, segment.to_pylist(), strict=True)
    ]
    values = {
        "stream": pa.array([content.stream] * len(a), pa.string()),
        "id": pa.array(id_texts(a, b), pa.string()),
        "segment": segment,
        "position": pa.array(positions, pa.int64()),
        "time": table.column("_clew_time"),
    }
    for name, dtype in columns.items():
        shown = f"row.{name}" if name in OURS else name
        values[shown] = _column(table, name, dtype)
    return pa.table(values)


def _column(table: pa.Table, name: str, dtype: pa.DataType) -> Any:
    if name not in table.column_names:
        return pa.nulls(table.num_rows, dtype)
    column = table.column(name)
    if column.type == dtype:
        return column
    if dtype == pa.string():
        return pa.array([None if v is None else show.cell(v) for v in to_python(column)], dtype)
    return column.cast(dtype)


def _empty() -> pa.Table:
    types = (pa.string(), pa.string(), pa.string(), pa.int64(), pa.timestamp("us", "UTC"))
    return pa.schema(list(zip(OURS, types, strict=True))).empty_table()


def _show(rows: Sequence[Row], contents: Sequence[Content]) -> list[show.Line]:
    columns = list(dict.fromkeys(name for each in contents for name in each.columns))
    several = len(contents) > 1
    timed = any(row.time is not None for row in rows)
    short = short_labels(rows)
    header = [*(["stream"] if several else []), "row", *(["time"] if timed else []), *columns]
    cells = [
        [
            *([row.stream] if several else []),
            short[row.id],
            *([_clock(row)] if timed else []),
            *(show.cell(row[name]) if name in row else "" for name in columns),
        ]
        for row in rows
    ]
    return show.table(header, cells, keep=2 if several else 1)


def _clock(row: Row) -> str:
    return "" if row.time is None else show.iso(row.time)
