"""From what a user has in hand to row ids.

A row may be given as an id, as `segment:position`, as a row of an earlier answer, or by the values
of some of its columns, the way it stands in the user's own output; an entity also as its
identifier. Values are compared as the
types of the stored columns; only the given columns count, and null equals null. A field of a nested
column is given as `window.start`, and of a point in time its clock alone will do.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from clew import show
from clew.ask.row import Row
from clew.ask.where import resolve
from clew.exceptions import QueryError, RowNotFoundError
from clew.model import RowId
from clew.show.arrow import id_texts, to_python
from clew.store.entity import COLUMN, entity_id
from clew.store.schema import sql_type

if TYPE_CHECKING:
    from clew.ask.content import Question
    from clew.store.relations import Relation

_HEX_ID = re.compile(r"[0-9a-fA-F]{32}")
_POSITION = re.compile(r"(?P<segment>.+):(?P<position>-?[0-9]+)", re.DOTALL)
_CLOCK = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2})(?:\.(\d{1,6}))?)?")
_DAY = 86_400_000_000
_SHOWN = 5
_FORMS = (
    "Give a row as its id (32 hexadecimal digits), as `segment:position`, as "
    "`column=value[,column=value]`, as a dict of column values, or as a row of an earlier answer."
)

RowLike = RowId | Row | str | Mapping[str, Any] | Any
"""What stands for a row: an id or its text, a row of an answer, a pyspark Row or a dict."""


def find(question: Question, stream: str, row: RowLike | Iterable[RowLike]) -> list[RowId]:
    """Find the ids of the rows that a user means, each once.

    Raises:
        QueryError: It cannot be told which row is meant.
        RowNotFoundError: The store has no such row.
    """
    if isinstance(row, RowId | str | Mapping) or hasattr(row, "asDict"):
        return [_find_one(question, stream, row)]
    if not isinstance(row, Iterable):
        raise _unclear(row)
    found = [_find_one(question, stream, each) for each in row]
    if not found:
        msg = f"no row was given.\n\n{_FORMS}"
        raise QueryError(msg)
    return list(dict.fromkeys(found))


def _find_one(question: Question, stream: str, row: RowLike) -> RowId:
    if isinstance(row, Row):
        row = row.id
    if isinstance(row, RowId):
        if row.stream != stream:
            msg = f"the row `{row}` belongs to stream `{row.stream}`, not to `{stream}`."
            raise QueryError(msg)
        return row
    if isinstance(row, str):
        return _by_text(question, stream, row)
    if hasattr(row, "asDict"):
        row = row.asDict(recursive=True)
    if isinstance(row, Mapping):
        return _by_values(question, stream, row)
    raise _unclear(row)


def _by_text(question: Question, stream: str, text: str) -> RowId:
    if _HEX_ID.fullmatch(text):
        return RowId.from_text(stream, text.lower())
    relation = question.rows_of(stream)
    columns = () if relation is None else (*paths_in(relation.columns), *relation.renamed)
    values = parse_values(text, columns)
    if values is None and stream in question.snapshot.shared:
        values = {COLUMN: text}
    if values is not None:
        return _by_values(question, stream, values)
    position = _POSITION.fullmatch(text)
    if position is None:
        raise _unclear(text)
    return _by_position(question, stream, position["segment"], int(position["position"]))


def parse_values(text: str, columns: Iterable[str]) -> dict[str, str | None] | None:
    """Read `column=value[,column=value]`; None if the text does not begin with a column.

    A comma separates only where a column's name and `=` follow, so values may hold commas. The
    bare word `null` stands for null; quotes around a value are taken off.

    Examples:
        >>> parse_values("car=7,note=a,b", ["car", "note"])
        {'car': '7', 'note': 'a,b'}
        >>> parse_values("in/part-0.parquet:3", ["car"]) is None
        True
    """
    names = "|".join(re.escape(each) for each in sorted(columns, key=len, reverse=True))
    if not names or not re.match(f"(?:{names})=", text):
        return None
    parts = re.split(f",(?=(?:{names})=)", text)
    pairs = (each.split("=", 1) for each in parts if each)
    return {name: unquote(value) for name, value in pairs}


def paths_in(columns: Mapping[str, pa.DataType]) -> Iterator[str]:
    """Yield the names of columns, and those of the fields inside them as `column.field`."""
    for name, dtype in columns.items():
        yield name
        if pa.types.is_struct(dtype):
            inside = {field.name: field.type for field in dtype.fields}
            yield from (f"{name}.{each}" for each in paths_in(inside))


def unquote(value: str) -> str | None:
    """Read a value as it is typed: the bare word `null` is null, and quotes are taken off."""
    if value == "null":
        return None
    if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"":
        return value[1:-1]
    return value


def _by_position(question: Question, stream: str, segment: str, position: int) -> RowId:
    relation = question.rows_of(stream)
    found: list[dict[str, Any]] = []
    if relation is not None:
        found = question.session.table(
            "SELECT DISTINCT _clew_segment AS segment, _clew_a AS a "
            f"FROM {relation.sql} WHERE _clew_segment = $segment "
            "OR ends_with(_clew_segment, $ending) ORDER BY ALL",
            {**relation.params, "segment": segment, "ending": f"/{segment}"},
        ).to_pylist()
    exact = [each for each in found if each["segment"] == segment]
    matching = exact or found
    if len(matching) > 1:
        names = ", ".join(f"`{each['segment']}`" for each in matching[:_SHOWN])
        msg = (
            f"`{segment}` stands for {show.count(len(matching), 'segment')} of `{stream}`: {names}"
            ".\n\nGive the segment's full name, or the row's id."
        )
        raise QueryError(msg)
    if not matching:
        raise _not_found(question, stream, f"`{segment}:{position}`")
    return RowId(stream, matching[0]["a"], position)


def _by_values(question: Question, stream: str, values: Mapping[str, Any]) -> RowId:
    given = values.get("clew_id")
    if isinstance(given, str) and _HEX_ID.fullmatch(given):
        return RowId.from_text(stream, given.lower())
    if not values:
        msg = f"a row of `{stream}` cannot be found by no column at all.\n\n{_FORMS}"
        raise QueryError(msg)
    shown = "with " + ", ".join(f"{name}={show.cell(value)}" for name, value in values.items())
    relation = question.rows_of(stream)
    if relation is None:
        raise _not_found(question, stream, shown)
    if stream in question.snapshot.shared and values.keys() == {COLUMN}:
        return _by_identifier(question, stream, values[COLUMN], shown)
    sql, params = _condition(question, stream, relation, values)
    found = question.session.table(
        f"SELECT DISTINCT r._clew_a AS a, r._clew_b AS b FROM {relation.sql} r "
        f"JOIN given g ON {sql} ORDER BY ALL",
        params,
    )
    if not found.num_rows:
        raise _not_found(question, stream, shown)
    a, b = found.column("a").to_pylist(), found.column("b").to_pylist()
    ids = [RowId(stream, *halves) for halves in zip(a, b, strict=True)]
    if len(ids) > 1:
        raise _several(question, stream, ids, shown.removeprefix("with "))
    return ids[0]


def _several(question: Question, stream: str, ids: Sequence[RowId], given: str) -> QueryError:
    """Say that several rows match, and list them with what tells them apart."""
    from clew.ask.content import fetch, ids_table

    table = fetch(question, stream, ids_table(ids[:_SHOWN])).table
    columns = [name for name in table.column_names if not name.startswith("_clew")]
    texts = id_texts(*(table.column(half).to_pylist() for half in ("_clew_a", "_clew_b")))
    values = {name: list(to_python(table.column(name))) for name in columns}
    cells = [
        [text, *(show.cell(values[name][i]) for name in columns)] for i, text in enumerate(texts)
    ]
    listed = show.join(show.table(["row", *columns], cells))
    more = "" if len(ids) <= _SHOWN else f"\nand {len(ids) - _SHOWN:,} more"
    own = _telling(values)
    example = f"more columns, e.g. `{own}`," if own else "more columns"
    return QueryError(
        f"{show.count(len(ids), 'row')} of `{stream}` match {given}, so it cannot be told which "
        f"one is meant:\n\n{listed}{more}\n\nGive {example} or one of the ids."
    )


def _telling(values: Mapping[str, Sequence[Any]]) -> str | None:
    """Find a column, or a field of one, that tells the first of some rows from the others."""
    for name, column in values.items():
        if any(isinstance(each, dict) for each in column):
            fields = next(each for each in column if isinstance(each, dict))
            inside = {f"{name}.{f}": [(each or {}).get(f) for each in column] for f in fields}
            found = _telling(inside)
            if found:
                return found
        elif not isinstance(column[0], list | bytes) and column.count(column[0]) == 1:
            return f"{name}={show.cell(column[0])}"
    return None


def _by_identifier(question: Question, stream: str, identifier: Any, shown: str) -> RowId:
    """Find an entity: its id follows from its identifier, so no text has to be compared."""
    from clew.ask.content import fetch, ids_table

    found = entity_id(stream, str(identifier))
    if not fetch(question, stream, ids_table([found])).table.column("_clew_known")[0].as_py():
        raise _not_found(question, stream, shown)
    return found


def _condition(
    question: Question, stream: str, relation: Relation, values: Mapping[str, Any]
) -> tuple[str, dict[str, Any]]:
    """Compare columns with values, which are handed over as a table of one row."""
    given: dict[str, pa.Array] = {}
    parts: list[str] = []
    for number, (name, value) in enumerate(values.items()):
        column, dtype = resolve(stream, relation, relation.renamed.get(name, name))
        clock = _clock(value) if pa.types.is_timestamp(dtype) else None
        if clock is not None:
            # Answers show points in time in UTC, in which a day is never longer or shorter.
            day = f"(epoch_us({column}) % {_DAY} + {_DAY}) % {_DAY}"
            given[f"v{number}"] = pa.array([clock], pa.int64())
            parts.append(f"{day} = g.v{number}")
            continue
        array = _as_type(name, value, dtype)
        given[f"v{number}"] = array
        right = f"g.v{number}" if array.type == dtype else f"CAST(g.v{number} AS {sql_type(dtype)})"
        if array.type != dtype:
            _check_cast(question, name, value, dtype)
        parts.append(f"{column} IS NOT DISTINCT FROM {right}")
    question.session.register("given", pa.table(given))
    return " AND ".join(parts), dict(relation.params)


def _clock(value: Any) -> int | None:
    """Read a time of day, in microseconds; None if a value is none."""
    if isinstance(value, dt.time):
        value = value.replace(tzinfo=None).isoformat()
    found = _CLOCK.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        return None
    hours, minutes, seconds = (int(found[i] or 0) for i in (1, 2, 3))
    if hours > 23 or minutes > 59 or seconds > 59:
        return None
    micros = int((found[4] or "").ljust(6, "0"))
    return ((hours * 60 + minutes) * 60 + seconds) * 1_000_000 + micros


def _as_type(column: str, value: Any, dtype: pa.DataType) -> pa.Array:
    """Turn a value into the column's type; text stays text, for DuckDB to read."""
    if isinstance(value, str) and dtype != pa.string():
        return pa.array([value], pa.string())
    if isinstance(value, float) and (pa.types.is_integer(dtype) or pa.types.is_decimal(dtype)):
        return pa.array([repr(value)], pa.string())
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        midnight = dt.datetime.combine(value, dt.time(), dt.timezone.utc)
        value = midnight if pa.types.is_timestamp(dtype) else value
    try:
        return pa.array([value], dtype)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise _wrong_type(column, value, dtype) from error


def _check_cast(question: Question, column: str, value: Any, dtype: pa.DataType) -> None:
    text = value if isinstance(value, str) else repr(value)
    cast = f"TRY_CAST($text AS {sql_type(dtype)})"
    kept = "true"
    if isinstance(value, float):
        kept = f"CAST({cast} AS DOUBLE) = CAST($text AS DOUBLE)"
    found = question.session.table(f"SELECT {cast} IS NOT NULL AND {kept} AS ok", {"text": text})
    if not found.column("ok")[0].as_py():
        raise _wrong_type(column, value, dtype)


def _wrong_type(column: str, value: Any, dtype: pa.DataType) -> QueryError:
    return QueryError(
        f"column `{column}` is {sql_type(dtype)} and cannot be {show.cell(value)} "
        f"({type(value).__name__}).\n\nGive a value of that type, or leave the column out."
    )


def _not_found(question: Question, stream: str, shown: str) -> RowNotFoundError:
    return RowNotFoundError(stream, shown, why_not_found(question, stream))


def why_not_found(question: Question, stream: str) -> str:
    """Explain why a row is not in the store, and name the batches that are."""
    snapshot = question.snapshot
    writer = snapshot.writer(stream)
    writers = snapshot.readers(stream) if writer is None else frozenset({writer})
    gaps = [str(gap) for each in sorted(writers) for gap in snapshot.gaps(each)]
    why = f"the store holds {snapshot.describe_batches(writers)}."
    if writer is None:
        why += " Of a source, only rows that contributed to a result are kept."
    if gaps:
        why += f" Missing are {'; '.join(gaps)}."
    return why


def _unclear(row: object) -> QueryError:
    return QueryError(f"it is not clear which row {show.escape(repr(row))} stands for.\n\n{_FORMS}")
