"""What came out when a query was run again, beside what had come out before."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from clew import show
from clew.exceptions import QueryError
from clew.model import RowId

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import DataFrame

    from clew.again.differences import Compared
    from clew.ask.trace import Trace
    from clew.plan.node import Node
    from clew.store.reader import Snapshot

Moment = str | dt.datetime

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)
_SHOWN = 10


@dataclass(frozen=True, slots=True)
class Difference:
    """A result that is not as it was.

    Attributes:
        id: The result's id.
        before: What it was; None if it was not there.
        after: What it is now; None if it is not there any more.
    """

    id: RowId
    before: dict[str, Any] | None
    after: dict[str, Any] | None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that differ; all of them if the result was or is not there."""
        one, other = self.before or {}, self.after or {}
        names = dict.fromkeys([*one, *other])
        return tuple(n for n in names if n not in one or n not in other or one[n] != other[n])

    def __str__(self) -> str:
        if self.before is None:
            return f"new: {_shown(self.after)}"
        if self.after is None:
            return f"gone: {_shown(self.before)}"
        rest = {n: v for n, v in self.before.items() if n not in self.columns}
        changes = [
            f"{n}: {show.cell(self.before.get(n))} -> {show.cell(self.after.get(n))}"
            for n in self.columns
        ]
        return f"changed: {_shown(rest)}: {', '.join(changes)}"


def _shown(values: dict[str, Any] | None) -> str:
    return ", ".join(f"{show.escape(n)}={show.cell(v)}" for n, v in (values or {}).items())


@dataclass(frozen=True, slots=True)
class Replay:
    """The outcome of running a query again.

    Attributes:
        stream: The results.
        unchanged: How many came out as they were.
        differences: Those that did not.
        changed_input: The source rows were changed before; differences are then what the change
            makes, else they are results that could not be reproduced.
    """

    stream: str
    unchanged: int
    differences: tuple[Difference, ...]
    changed_input: bool = False

    @property
    def same(self) -> bool:
        """Whether every result came out as it was."""
        return not self.differences

    def to_dict(self) -> dict[str, Any]:
        """Return the outcome as plain data that JSON can hold."""
        return {
            "stream": self.stream,
            "same": self.same,
            "unchanged": self.unchanged,
            "changed_input": self.changed_input,
            "differences": [
                {"id": each.id.text, "before": each.before, "after": each.after}
                for each in self.differences
            ],
        }

    def _repr_html_(self) -> str:
        from clew.show.page import replay_page

        return replay_page(self)

    def __str__(self) -> str:
        count = len(self.differences)
        plural = "" if self.unchanged == 1 else "s"
        head = f"{self.stream}: {self.unchanged:,} result{plural} as before"
        if not count:
            return head + ", none differs"
        lines = [head + f", {count:,} {'differs' if count == 1 else 'differ'}"]
        lines += [f"  {each}" for each in self.differences[:_SHOWN]]
        if count > _SHOWN:
            lines.append(f"  and {count - _SHOWN:,} more")
        return "\n".join(lines)


def replay_stream(
    snapshot: Snapshot,
    stream: str,
    node: Node,
    period: tuple[Moment, Moment] | None,
    what_if: Mapping[str, Callable[[DataFrame], DataFrame]] | None,
    tolerance: float,
) -> Replay:
    """Make the results of a stream again from its sources; see `Provenance.replay`."""
    from clew.again.cover import Span
    from clew.again.repeat import rerun

    span = None if period is None else Span(_micros(period[0]), _micros(period[1]))
    compared = rerun(snapshot, stream, node, span, what_if, tolerance)
    return _outcome(stream, compared, changed_input=what_if is not None)


def replay_trace(snapshot: Snapshot, trace: Trace, node: Node, tolerance: float) -> Replay:
    """Make the results of a trace again from the rows in it; see `Provenance.replay`."""
    from clew.again.repeat import rerun_rows

    stream = stream_of(trace)
    rows = {each.stream: each.table for each in trace.sources.contents}
    ids = [(each.a, each.b) for each in trace.results.ids()]
    compared = rerun_rows(snapshot, stream, node, rows, ids, tolerance)
    return _outcome(stream, compared, changed_input=False)


def stream_of(trace: Trace) -> str:
    """Return the one stream that the results of a trace belong to.

    Raises:
        QueryError: There are several.
    """
    if len(trace.results.streams) > 1:
        msg = "a trace with results of several streams is replayed stream by stream."
        raise QueryError(msg)
    return trace.results.streams[0] if len(trace.results) else trace.stream


def _outcome(stream: str, compared: Compared, *, changed_input: bool) -> Replay:
    found = tuple(
        Difference(RowId(stream, each.a, each.b), each.before, each.after)
        for each in compared.changed
    )
    return Replay(stream, compared.same, found, changed_input)


def _micros(moment: Moment) -> int:
    """Read a moment, in UTC unless it says otherwise, as microseconds since 1970.

    Raises:
        QueryError: It is none.
    """
    if isinstance(moment, str):
        try:
            moment = dt.datetime.fromisoformat(moment)
        except ValueError as error:
            msg = (
                'a moment is written as "2026-01-01 12:00:00" or given as a datetime; got '
                f"{moment!r}."
            )
            raise QueryError(msg) from error
    moment = moment if moment.tzinfo else moment.replace(tzinfo=dt.timezone.utc)
    return (moment - _EPOCH) // dt.timedelta(microseconds=1)
