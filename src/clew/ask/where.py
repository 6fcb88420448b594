"""Which rows of a stream are wanted, said with values instead of SQL.

A page or another program hands over columns, comparisons and values. Columns are looked up in the
stream's own, values go to DuckDB as parameters, so whatever stands in them is compared and never
run. A condition in SQL (`where`) is for people at their own machine.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

import pyarrow as pa

from clew import show
from clew.exceptions import QueryError
from clew.model import RowId
from clew.store.engine import literal
from clew.store.schema import quote, sql_type

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Mapping

    from clew.ask.content import Question
    from clew.store.relations import Relation

Operator = Literal["=", "!=", "<", "<=", ">", ">=", "contains"]
OPERATORS: tuple[str, ...] = get_args(Operator)
"""How a column can be compared with a value."""

_HEX_ID = re.compile(r"[0-9a-fA-F]{32}")
_HEX = re.compile(r"(?:[0-9a-fA-F]{2})*")
_POSITION = re.compile(r"(?P<segment>.+):(?P<position>-?[0-9]{1,18})", re.DOTALL)
_ID = "lower(lpad(hex(r._clew_a), 16, '0') || lpad(hex(r._clew_b), 16, '0'))"
_EQUAL = {"=": "IS NOT DISTINCT FROM", "!=": "IS DISTINCT FROM"}


@dataclass(frozen=True, slots=True)
class Filter:
    """A column, a comparison and a value.

    Attributes:
        column: The column; a field of a nested one as `window.start`.
        op: The comparison; `contains` looks for text in what the value looks like, in any case.
        value: The value, or text that can be read as one. None, or the bare word `null`, is null.
    """

    column: str
    op: Operator
    value: Any


@dataclass(frozen=True, slots=True)
class Choice:
    """The rows that are wanted, and their order.

    Attributes:
        filters: Conditions on columns; all of them hold.
        since: Only rows with this event time or a later one.
        until: Only rows with this event time or an earlier one.
        id: Only rows whose id begins so, or that stand at `segment:position`.
        text: Only rows with this text in some column.
        sort: Order by this column; by time and id if left out.
        descending: The other way round.
        offset: Leave out so many rows at the start.
    """

    filters: tuple[Filter, ...] = ()
    since: str | dt.datetime | None = None
    until: str | dt.datetime | None = None
    id: str | None = None
    text: str | None = None
    sort: str | None = None
    descending: bool = False
    offset: int = 0


@dataclass(slots=True)
class Terms:
    """SQL for a choice.

    Attributes:
        conditions: Conditions that all hold.
        params: The values that they refer to.
    """

    conditions: list[str] = field(default_factory=list)
    params: dict[str, Any] = field(default_factory=dict)

    def bind(self, value: Any) -> str:
        """Keep a value, and return how SQL refers to it."""
        name = f"choice_{len(self.params)}"
        self.params[name] = value
        return f"${name}"


def terms_of(question: Question, stream: str, relation: Relation, choice: Choice) -> Terms:
    """Turn a choice into conditions and parameters.

    Raises:
        QueryError: There is no such column or comparison, or a value does not fit its column.
    """
    terms = Terms()
    for each in choice.filters:
        terms.conditions.append(_compare(question, stream, relation, each, terms))
    for bound, op in ((choice.since, ">="), (choice.until, "<=")):
        if bound is not None:
            moment = terms.bind(_moment(question, bound))
            terms.conditions.append(f"r._clew_time {op} CAST({moment} AS TIMESTAMPTZ)")
    if choice.id:
        terms.conditions.append(_by_id(choice.id, terms))
    if choice.text:
        terms.conditions.append(_anywhere(relation, choice.text, terms))
    return terms


def order_of(stream: str, relation: Relation, choice: Choice) -> str:
    """Return what to order rows by, in SQL."""
    way = "DESC" if choice.descending else "ASC"
    by_id = f"r._clew_a {way}, r._clew_b {way}"
    by_time = f"r._clew_time {way} NULLS LAST, {by_id}"
    if choice.sort is None:
        return by_time
    column, _ = resolve(stream, relation, choice.sort)
    return f"{column} {way} NULLS LAST, {by_time}"


def parse_filter(text: str) -> Filter:
    """Read a condition as it is typed: a column, a comparison, a value.

    Raises:
        QueryError: It is none.

    Examples:
        >>> parse_filter("n >= 4")
        Filter(column='n', op='>=', value='4')
        >>> parse_filter("place contains north")
        Filter(column='place', op='contains', value='north')
    """
    found = re.fullmatch(
        r"\s*(?P<column>.+?)\s*(?P<op>!=|<=|>=|=|<|>|\bcontains\b)\s*(?P<value>.*?)\s*",
        text,
        re.DOTALL,
    )
    if found is None:
        msg = (
            f"`{show.escape(text)}` is not a condition.\n\n"
            "Write a column, a comparison and a value, e.g. `n >= 4`; the comparisons are: "
            f"{', '.join(OPERATORS)}."
        )
        raise QueryError(msg)
    return Filter(found["column"], cast("Operator", found["op"]), found["value"])


def _compare(
    question: Question, stream: str, relation: Relation, wanted: Filter, terms: Terms
) -> str:
    if wanted.op not in OPERATORS:
        msg = (
            f"`{show.escape(str(wanted.op))}` is not a comparison.\n\n"
            f"The comparisons are: {', '.join(OPERATORS)}."
        )
        raise QueryError(msg)
    column, dtype = resolve(stream, relation, wanted.column)
    value = _unquote(wanted.value)
    if wanted.op == "contains":
        text = value if isinstance(value, str) else show.cell(value)
        return _contains(column, dtype, terms.bind(text.lower()))
    if value is None:
        return f"{column} {_EQUAL[wanted.op]} NULL" if wanted.op in _EQUAL else "false"
    right = _typed(question, wanted.column, dtype, value, terms)
    return f"{column} {_EQUAL.get(wanted.op, wanted.op)} {right}"


def _typed(question: Question, column: str, dtype: pa.DataType, value: Any, terms: Terms) -> str:
    """Bind a value as the type of its column; refuse one that cannot be of it."""
    text = value if isinstance(value, str) else str(show.plain(value))
    if pa.types.is_binary(dtype):
        if _HEX.fullmatch(text) is None:
            raise _unfit(column, dtype, text)
        return f"unhex({terms.bind(text)})"
    if not _can_cast(question, text, sql_type(dtype)):
        raise _unfit(column, dtype, text)
    return f"CAST({terms.bind(text)} AS {sql_type(dtype)})"


def _can_cast(question: Question, text: str, to: str) -> bool:
    found = question.session.table(
        f"SELECT TRY_CAST($text AS {to}) IS NOT NULL AS ok", {"text": text}
    )
    return bool(found.column("ok")[0].as_py())


def _unfit(column: str, dtype: pa.DataType, text: str) -> QueryError:
    return QueryError(
        f"column `{show.escape(column)}` is {sql_type(dtype)} and cannot be compared with "
        f"{show.escape(text)!r}.\n\nGive a value of that type, or use `contains`."
    )


def resolve(stream: str, relation: Relation, name: str) -> tuple[str, pa.DataType]:
    """Find a column, or a field inside one; return it in SQL, and its type."""
    spelling = {each.casefold(): each for each in relation.columns}
    first, *inside = (name,)
    if name.casefold() not in spelling:
        first, *inside = name.split(".")
    column = spelling.get(first.casefold())
    if column is None:
        raise _no_column(stream, name, relation.columns)
    sql, dtype = f"r.{quote(column)}", relation.columns[column]
    for each in inside:
        place = dtype.get_field_index(each) if pa.types.is_struct(dtype) else -1
        if place < 0:
            raise _no_column(stream, name, relation.columns)
        sql, dtype = f"struct_extract({sql}, {literal(each)})", dtype.field(place).type
    return sql, dtype


def _no_column(stream: str, name: str, columns: Mapping[str, pa.DataType]) -> QueryError:
    known = ", ".join(f"`{each}`" for each in columns)
    return QueryError(
        f"stream `{stream}` has no column `{show.escape(name)}`.\n\nThe columns are: {known}."
    )


def _unquote(value: Any) -> Any:
    if value == "null":
        return None
    if isinstance(value, str) and len(value) > 1 and value[0] == value[-1] and value[0] in "'\"":
        return value[1:-1]
    return value


def _moment(question: Question, value: str | dt.datetime) -> str:
    text = value if isinstance(value, str) else show.iso(value)
    if not _can_cast(question, text, "TIMESTAMPTZ"):
        msg = (
            f"{show.escape(text)!r} is not a point in time.\n\nWrite it as `2026-01-01T08:00:00Z`."
        )
        raise QueryError(msg)
    return text


def _by_id(text: str, terms: Terms) -> str:
    if _HEX_ID.fullmatch(text):
        row = RowId.from_text("", text.lower())
        return f"r._clew_a = {terms.bind(row.a)} AND r._clew_b = {terms.bind(row.b)}"
    place = _POSITION.fullmatch(text)
    given = terms.bind(text.lower())
    either = f"starts_with({_ID}, {given}) OR contains(lower(r._clew_segment), {given})"
    if place is not None:
        segment, ending = terms.bind(place["segment"]), terms.bind(f"/{place['segment']}")
        either += (
            f" OR (r._clew_b = {terms.bind(int(place['position']))} AND "
            f"(r._clew_segment = {segment} OR ends_with(r._clew_segment, {ending})))"
        )
    return f"coalesce({either}, false)"


def _anywhere(relation: Relation, text: str, terms: Terms) -> str:
    given = terms.bind(text.lower())
    found = [
        _contains(f"r.{quote(name)}", dtype, given) for name, dtype in relation.columns.items()
    ]
    return f"({' OR '.join(found) or 'false'})"


def _contains(column: str, dtype: pa.DataType, given: str) -> str:
    text = f"hex({column})" if pa.types.is_binary(dtype) else f"CAST({column} AS VARCHAR)"
    return f"coalesce(contains(lower({text}), {given}), false)"
