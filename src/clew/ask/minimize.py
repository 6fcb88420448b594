"""The smallest cause: the fewest source rows of a result that still produce it.

Rows of its trace are left out, the query is run again, and whether the result is still there and
meets a condition decides what to try next. What is found cannot lose a single row; `ddmin` says how
it is found, `clew.again.trials` how many trials share a Spark job.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from clew import show
from clew.ask.ddmin import HopelessError, Search
from clew.ask.row import Content, Rows
from clew.exceptions import QueryError, ReplayError
from clew.show.arrow import to_python

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import Column

    from clew.again.trials import Trials
    from clew.ask.ddmin import Kept
    from clew.ask.trace import Trace
    from clew.model import RowId
    from clew.plan.condition import Condition
    from clew.plan.node import Node
    from clew.store.reader import Snapshot

_SHOWN = 20


@dataclass(frozen=True, repr=False, eq=False)
class Minimal:
    """The fewest rows behind a result that still produce it.

    Attributes:
        id: The result.
        condition: What it has to meet; None if it only has to be there.
        rows: The source rows, none of which can be left out.
        of: How many source rows the result was made from.
        tests: How many sets of rows were tried.
        seconds: How long that took.
        complete: The search came to its end; else it was stopped, and more rows might go.
        smallest: There is no smaller set at all; else none of its rows can be left out.
        result: What the result is if it is made of these rows; None if nothing was tried yet.
    """

    id: RowId
    condition: str | None
    rows: Rows
    of: int
    tests: int
    seconds: float
    complete: bool
    smallest: bool
    result: dict[str, Any] | None

    @property
    def stream(self) -> str:
        """The stream of the result."""
        return self.id.stream

    def to_dict(self, limit: int | None = None) -> dict[str, Any]:
        """Return the answer as plain data that JSON can hold.

        Args:
            limit: At most so many rows; None for all. `left_out` says how many are not there.
        """
        shown = self.rows[:limit]
        return {
            "stream": self.stream,
            "id": self.id.text,
            "condition": self.condition,
            "rows": [row.to_dict() for row in shown],
            "left_out": len(self.rows) - len(shown),
            "of": self.of,
            "tests": self.tests,
            "seconds": self.seconds,
            "complete": self.complete,
            "smallest": self.smallest,
            "result": show.plain(self.result),
        }

    def lines(self, limit: int | None = _SHOWN, hint: str = "") -> list[show.Line]:
        """Show the answer: a sentence, the rows, and what they give.

        Args:
            limit: At most so many rows; None for all.
            hint: What to say behind the number of rows left out.
        """
        lines = [show.Line("headline", show.escape(self._headline()))]
        if len(self.rows):
            lines += [show.Line("note", ""), *self.rows.lines(limit, hint)]
        lines.append(show.Line("note", ""))
        if self.result is not None:
            values = [f"{show.escape(n)}={show.cell(v)}" for n, v in self.result.items()]
            lines.append(show.Line("note", f"they give: {', '.join(values)}"))
        lines.append(show.Line("note", f"{show.count(self.tests, 'test')}, {self.seconds:.1f} s"))
        if not self.complete:
            lines.append(show.Line("warning", "stopped: perhaps fewer rows would do"))
        return lines

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return show.join(self.lines())

    def _headline(self) -> str:
        met = "produce it" if self.condition is None else f"give it with {self.condition}"
        rest = "no smaller set does" if self.smallest else "none of them can be left out"
        end = f", and {rest}" if self.complete and len(self.rows) else ""
        counted = f"{len(self.rows):,} of the {show.count(self.of, 'source row')}"
        return f"Row {self.id.text} of `{self.stream}`: {counted} {met}{end}."


@dataclass
class _Replayed:
    """Judges sets of rows by running the query over them, and remembers what they gave."""

    trials: Trials
    row: Column
    condition: Column | None
    gave: dict[Kept, dict[str, Any]] = field(default_factory=dict)

    def together(self, size: int) -> int:
        return self.trials.together(size)

    def passing(self, sets: Sequence[Kept]) -> set[Kept]:
        from clew.capture.numbered import TRIAL

        table = self.trials.run(sets, {"row": self.row}, self.condition)
        found = zip(table.column(TRIAL).to_pylist(), to_python(table.column("row")), strict=True)
        passed = {sets[each]: values for each, values in found}
        self.gave.update(passed)
        return set(passed)


def minimize(
    snapshot: Snapshot,
    trace: Trace,
    node: Node,
    condition: str | Condition | None,
    progress: Callable[[int, int, int], None] | None,
    stop: Callable[[], bool] | None,
) -> Minimal:
    """Find the fewest rows of a trace that still produce its result; see `Provenance.minimize`."""
    from clew.again.trial_rows import prepare

    began = time.perf_counter()
    [result] = trace.start
    wanted = None if condition is None else _column_of(node, condition)
    members = [(each.stream, each.a, each.b) for each in trace.rows.ids()]
    rows = {each.stream: each.table for each in trace.rows.contents}
    [asked] = trace.start.contents
    trials = prepare(snapshot, result.stream, node, rows, members, asked.table)
    try:
        judge = _Replayed(trials, _row_of(node), wanted)
        whole = frozenset(range(len(members)))
        search = Search(judge, whole, progress, stop)
        search.run()
    except HopelessError as error:
        raise _why_hopeless(judge, whole, result.id, condition) from error
    finally:
        trials.close()
    return Minimal(
        id=result.id,
        condition=None if condition is None else str(condition),
        rows=_picked(trace.rows, search.best),
        of=len(members),
        tests=search.tests,
        seconds=time.perf_counter() - began,
        complete=search.complete,
        smallest=search.smallest,
        result=judge.gave.get(search.best),
    )


def _column_of(node: Node, condition: str | Condition) -> Column:
    """Let Spark look at the condition before anything is run; only a user's own text is SQL.

    Raises:
        QueryError: Spark does not accept it.
    """
    from pyspark.errors import AnalysisException, ParseException
    from pyspark.sql import functions as F

    from clew.plan.build import build_column
    from clew.plan.sql import quiet

    df = node.plain.df
    columns = [name for name in df.columns if not name.startswith("_clew")]
    try:
        with quiet():
            given = condition
            column = F.expr(given) if isinstance(given, str) else build_column(given.tree)
            _ = df.filter(column).schema
    except (AnalysisException, ParseException) as error:
        reason = str(error).strip().splitlines()[0]
        known = ", ".join(f"`{name}`" for name in columns)
        msg = (
            f"Spark does not accept the condition {str(condition)!r}: {reason}\n\n"
            f"Write a condition over the result's columns in Spark's SQL. They are: {known}."
        )
        raise QueryError(msg) from error
    return column


def _row_of(node: Node) -> Column:
    """Return all of a result as one value, in the store's form."""
    from pyspark.sql import functions as F

    from clew.capture.sets import content

    packed, _ = content([(f.name, f.dataType) for f in node.schema.fields])
    return F.expr(packed)


def _why_hopeless(
    judge: _Replayed, whole: Kept, result: RowId, condition: str | Condition | None
) -> QueryError:
    """Say why a search cannot begin: its rows together must do."""
    again = _Replayed(judge.trials, judge.row, None)
    if judge.condition is not None and again.passing([whole]):
        values = ", ".join(f"{n}={show.cell(v)}" for n, v in again.gave[whole].items())
        return QueryError(
            f"`{result.text}` of `{result.stream}` does not meet {str(condition)!r} even with "
            f"all of its rows; it is {values}.\n\nGive a condition that holds for the result."
        )
    return ReplayError(
        f"`{result.text}` of `{result.stream}` does not come out again from the rows it was made "
        "from, so it cannot be told which of them it needs.\n\nSee what differs: "
        "`prov.replay(trace)`, or `clew replay`."
    )


def _picked(rows: Rows, kept: Kept) -> Rows:
    """Keep some rows of an answer, by their positions."""
    wanted = {each for i, each in enumerate(rows.ids()) if i in kept}
    contents = []
    for each in rows.contents:
        mask = pa.array([row in wanted for row in each.ids()], pa.bool_())
        contents.append(Content(each.stream, each.table.filter(mask), each.numbered))
    return Rows(contents)
