"""Which source rows carry most of a result's value.

The influence of a row on a column of a result is the value as it is, less the value without the
row. Where the column is a sum, count, average, minimum or maximum of a source column, that has a
closed form and needs no Spark; the rows' own values must then give the stored result, or the form
is not used. For anything else the query is run again, once without each row, all in one job. Where
neither can be, `why` says so, and no number is given.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from clew import show
from clew.ask import closed
from clew.ask.followed import FUNCTIONS, aggregated
from clew.ask.trace import one_of
from clew.exceptions import QueryError, ReplayError
from clew.plan.mask import mask_from
from clew.show.arrow import to_python
from clew.store.commit import read_stream

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from clew.ask.closed import Amount
    from clew.ask.followed import Aggregated
    from clew.ask.row import Row, Rows
    from clew.ask.trace import Trace
    from clew.model import RowId

    WithoutEach = Callable[[Trace, str], list[Any]]

MOST_ROWS = 400
"""How many rows are left out one by one at most; each time the query runs over all others."""

_SHOWN = 20
_NAMED = 'If each row brings one value to it, name its column: `influence(value="column")`.'


@dataclass(frozen=True, slots=True)
class Weighed:
    """A source row, and what it does to a result.

    Attributes:
        row: The source row.
        amount: The value that it brings; None if it brings none, or not just one.
        influence: The result less the result without the row; None if there is none without it.
        share: The influence as a part of all rows' influences, without signs.
    """

    row: Row
    amount: Any
    influence: Amount
    share: float | None

    def to_dict(self) -> dict[str, Any]:
        """Return the row as plain data that JSON can hold."""
        return {
            **self.row.to_dict(),
            "amount": show.plain(self.amount),
            "influence": show.plain(self.influence),
            "share": self.share,
        }


@dataclass(frozen=True, repr=False, eq=False)
class Influence:
    """How much each source row moves a result, the largest first.

    Attributes:
        id: The result.
        column: The column of it.
        function: How it is aggregated, if that is known.
        value: What is aggregated.
        result: The column's value.
        why: Why there are no influences, if there are none.
        columns: The columns of the result that can be asked about.
    """

    id: RowId
    column: str | None
    function: str | None
    value: str | None
    result: Any
    why: str | None
    columns: tuple[str, ...]
    _rows: Rows = field(repr=False)
    _amounts: Sequence[Amount] = field(default=(), repr=False)
    _influences: Sequence[Amount] = field(default=(), repr=False)
    _order: Sequence[int] = field(default=(), repr=False)

    @property
    def stream(self) -> str:
        """The stream of the result."""
        return self.id.stream

    @property
    def rows(self) -> list[Weighed]:
        """The rows, those with most influence first; ties by time and id."""
        return self.top(None)

    def top(self, count: int | None) -> list[Weighed]:
        """Return the rows with most influence."""
        chosen = self._order[:count]
        total = sum(abs(float(each)) for each in self._influences if each is not None)
        rows = self._rows.at(chosen)
        return [
            Weighed(row, self._amounts[i], self._influences[i], self._share(i, total))
            for row, i in zip(rows, chosen, strict=True)
        ]

    def _share(self, place: int, total: float) -> float | None:
        moved = self._influences[place]
        if moved is None:
            # The only row: without it there would be no value at all, so all of it is this row's.
            return 1.0 if not total and list(self._influences).count(None) == 1 else None
        return abs(float(moved)) / total if total else None

    def to_dict(self, limit: int | None = None) -> dict[str, Any]:
        """Return the answer as plain data that JSON can hold.

        Args:
            limit: At most so many rows; None for all. `left_out` says how many are not there.
        """
        shown = self.top(limit)
        return {
            "stream": self.stream,
            "id": self.id.text,
            "column": self.column,
            "function": self.function,
            "value": self.value,
            "result": show.plain(self.result),
            "rows": [each.to_dict() for each in shown],
            "left_out": len(self._order) - len(shown),
            "why": self.why,
            "columns": list(self.columns),
        }

    def lines(self, limit: int | None = _SHOWN, hint: str = "") -> list[show.Line]:
        """Show the answer: a sentence, and the rows with what each does.

        Args:
            limit: At most so many rows; None for all.
            hint: What to say behind the number of rows left out.
        """
        lines = [show.Line("headline", show.escape(self._headline()))]
        if self.why is not None:
            lines += [show.Line("warning", show.escape(each)) for each in self.why.split("\n")]
        shown = self.top(limit)
        if shown:
            cells = [_cells(each) for each in shown]
            columns = list(dict.fromkeys(name for each in shown for name in each.row))
            header = ["row", "amount", "influence", "share", *columns]
            values = [[show.cell(e.row[n]) if n in e.row else "" for n in columns] for e in shown]
            rows = [[*c, *v] for c, v in zip(cells, values, strict=True)]
            lines += [show.Line("note", ""), *show.table(header, rows)]
        left = len(self._order) - len(shown)
        if left:
            lines.append(show.Line("note", f"and {left:,} more{hint}"))
        return lines

    def __len__(self) -> int:
        return len(self._order)

    def __repr__(self) -> str:
        return show.join(self.lines())

    def _headline(self) -> str:
        if self.column is None:
            return f"Row {self.id.text} of `{self.stream}`"
        made = "" if self.function is None else f", {self.function} of {self.value}"
        return (
            f"`{self.column}` of row {self.id.text} of `{self.stream}` is "
            f"{show.cell(self.result)}{made}."
        )


def _cells(each: Weighed) -> list[str]:
    label = each.row.label.rsplit("/", 1)[-1]
    share = "" if each.share is None else f"{100 * each.share:.1f} %"
    return [label, show.cell(each.amount), show.cell(each.influence), share]


def influence(
    root: Path, trace: Trace, without_each: WithoutEach, column: str | None, value: str | None
) -> Influence:
    """Weigh the rows of a trace; see `Provenance.influence`.

    Args:
        root: The store.
        trace: The result, and the rows that the query itself made it from.
        without_each: Runs the query again.
        column: The result's column.
        value: The rows' column.
    """
    return _Asked(root, trace, without_each).answer(column, value)


class _Asked:
    """One question about influence."""

    def __init__(self, root: Path, trace: Trace, without_each: WithoutEach) -> None:
        self.trace = trace
        self.without_each = without_each
        self.result = one_of(trace)
        said = read_stream(root, trace.stream) or {}
        self.made = aggregated(said)
        self.mask = mask_from(said.get("mask"))

    def _masked(self, column: str | None, value: str | None) -> str | None:
        """Name a column that could be needed and is masked; all could be if none are named."""
        named = [each for each in (column, value) if each is not None]
        if len(named) < len((column, value)):
            named += [name for name, _ in self.mask.columns]
        return next(iter(self.mask.hides(named)), None)

    def answer(self, column: str | None, value: str | None) -> Influence:
        """Choose a column if none is named, and weigh the rows."""
        if column is not None and column not in self.result:
            known = ", ".join(f"`{name}`" for name in self.result)
            msg = f"`{self.trace.stream}` has no column `{column}`.\n\nThe columns are: {known}."
            raise QueryError(msg)
        if not self.result.known:
            return self._none(column, "what the result holds is not in the store")
        hidden = self._masked(column, value)
        if hidden is not None:
            return self._none(column, f"the store does not keep `{hidden}` as it was (`mask`)")
        column = self._default() if column is None else column
        if column is None:
            why = f"no column of `{self.trace.stream}` is an aggregate that is known"
            return self._none(None, f"{why}.\nName the column: `influence(column=...)`.")
        if self.result[column] is None:
            return self._none(column, f"`{column}` is null: no row brings a value to it")
        if not closed.is_number(self.result[column]):
            return self._none(column, f"`{column}` is no number")
        if not all(self._known()):
            lost = self._known().count(False)
            why = f"the content of {show.count(lost, 'source row')} is not in the store"
            return self._none(column, why)
        return self._named(column, value) if value is not None else self._found(column)

    def _default(self) -> str | None:
        """Choose the column whose rows are told apart best."""
        numbers = [n for n in self.made if closed.is_number(self.result.get(n))]
        ranks = {name: rank for rank, name in enumerate(FUNCTIONS)}
        numbers.sort(key=lambda name: ranks.get(self.made[name].function or "", len(ranks)))
        return numbers[0] if numbers else next(iter(self.made), None)

    def _named(self, column: str, value: str) -> Influence:
        """Weigh rows by a column of theirs that the user names."""
        made = self.made.get(column)
        if made is None or made.function is None:
            how = "nothing is known of it" if made is None else f"it is `{made.text}`"
            text = f"`{column}` is not a {show.listing(FUNCTIONS[:-1])} or {FUNCTIONS[-1]}: {how}"
            return self._none(column, text)
        amounts = self._amounts(dict.fromkeys(self.trace.rows.streams, value))
        if self._agrees(made.function, amounts, column):
            return self._weighed(column, made.function, value, amounts)
        values = _values(made.function, amounts)
        gave = "no number" if values is None else show.cell(closed.aggregate(made.function, values))
        why = (
            f"the {made.function} of `{value}` over the source rows is {gave}, and `{column}` is "
            f"{show.cell(self.result[column])}: it is not what it is made of"
        )
        return self._none(column, why)

    def _agrees(self, function: str, amounts: Sequence[Any], column: str) -> bool:
        """Tell whether the rows' own values give what the result is."""
        values = _values(function, amounts)
        return values is not None and closed.agrees(function, values, self.result[column])

    def _found(self, column: str) -> Influence:
        """Weigh rows by what the pipeline says, or by leaving each out."""
        made = self.made.get(column)
        streams = set(self.trace.rows.streams)
        if made is not None and made.function and made.columns and streams <= set(made.columns):
            amounts = self._amounts(made.columns)
            if self._agrees(made.function, amounts, column):
                return self._weighed(column, made.function, made.value, amounts)
        return self._left_out(column, made)

    def _left_out(self, column: str, made: Aggregated | None) -> Influence:
        """Weigh rows by running the query again without each."""
        count = len(self.trace.rows)
        if count > MOST_ROWS:
            why = f"it takes running the query again without each row, and {count:,} are too many"
            return self._none(column, f"{why} (at most {MOST_ROWS:,}).\n{_NAMED}")
        try:
            whole, *found = self.without_each(self.trace, column)
        except ReplayError as error:
            first = str(error).split("\n\n", maxsplit=1)[0]
            return self._none(column, f"it takes running the query again, and {first}\n{_NAMED}")
        if not _is_same(whole, self.result[column]):
            why = f"run again, the query gives {show.cell(whole)} and not what is in the store"
            return self._none(column, why)
        function = None if made is None else made.function or made.text.split("(")[0]
        moved = [None if other is None else _difference(whole, other) for other in found]
        value = None if made is None else made.value or made.text
        return self._made_of(column, function, value, [None] * len(moved), moved)

    def _weighed(
        self, column: str, function: str, value: str | None, amounts: Sequence[Any]
    ) -> Influence:
        result = self.result[column]
        if not closed.is_finite(result):
            bad = [i for i, each in enumerate(amounts) if not _is_plain(each)]
            why = (
                f"`{column}` is {show.cell(result)}, made so by {show.count(len(bad), 'row')} "
                f"whose `{value}` is not a finite number"
            )
            nothing: list[Amount] = [None] * len(amounts)
            return self._made_of(column, function, value, amounts, nothing, why, bad)
        moved = closed.influences(function, _values(function, amounts) or ())
        return self._made_of(column, function, value, amounts, moved)

    def _amounts(self, columns: Mapping[str, str | None]) -> list[Any]:
        """Return the value of each row, in the order of the trace; 1 where rows are counted."""
        parts = {each.stream: each for each in self.trace.rows.contents}
        values: dict[RowId, Any] = {}
        for stream, content in parts.items():
            name = columns[stream]
            if name is not None and name not in content.columns:
                known = ", ".join(f"`{each}`" for each in content.columns)
                msg = f"`{stream}` has no column `{name}`.\n\nThe columns are: {known}."
                raise QueryError(msg)
            size = content.table.num_rows
            listed = [1] * size if name is None else to_python(content.table.column(name))
            values.update(zip(content.ids(), listed, strict=True))
        return [values[each] for each in self.trace.rows.ids()]

    def _known(self) -> list[bool]:
        tables = [each.table for each in self.trace.rows.contents]
        return [bool(k) for table in tables for k in table.column("_clew_known").to_pylist()]

    def _none(self, column: str | None, why: str) -> Influence:
        return self._made_of(column, None, None, (), (), why, ())

    def _made_of(
        self,
        column: str | None,
        function: str | None,
        value: str | None,
        amounts: Sequence[Any],
        moved: Sequence[Amount],
        why: str | None = None,
        chosen: Sequence[int] | None = None,
    ) -> Influence:
        made = None if column is None else self.made.get(column)
        if function is None and made is not None:
            function, value = made.function, made.value
        places = range(len(moved)) if chosen is None else chosen
        return Influence(
            id=self.result.id,
            column=column,
            function=function,
            value=value,
            result=None if column is None else self.result.get(column),
            why=why,
            columns=tuple(self.made),
            _rows=self.trace.rows,
            _amounts=amounts,
            _influences=moved,
            _order=sorted(places, key=lambda i: _rank(moved[i])),
        )


def _rank(moved: Amount) -> tuple[int, float]:
    """Put the largest first, whatever its sign, behind rows without which nothing is left."""
    return (0, 0.0) if moved is None else (1, -abs(float(moved)))


def _values(function: str, amounts: Sequence[Any]) -> list[Amount] | None:
    """Take amounts as numbers; None if they are none. Anything at all can be counted."""
    if function == "count":
        return [None if each is None else 1 for each in amounts]
    plain = all(each is None or closed.is_number(each) for each in amounts)
    return list(amounts) if plain else None


def _is_plain(value: Any) -> bool:
    return value is None or closed.is_finite(value)


def _is_same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-9) or (math.isnan(one) and math.isnan(other))
    return bool(one == other)


def _difference(one: Any, other: Any) -> Amount:
    moved: Amount = one - other
    return moved if closed.is_finite(moved) else None
