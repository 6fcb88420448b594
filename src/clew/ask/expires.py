"""When a row expires: the moment that a query's watermark must pass.

Each query that reads a row's stream holds the row until its own watermark is beyond the row's event
time by more than the query's bound; a query behind it holds the row for as long as nobody knows.
The query that has the longest way to go decides, so its moment and its watermark are the ones that
are shown.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from clew import show
from clew.ask.row import Rows
from clew.ask.trace import STATUS
from clew.expiry.horizon import horizon_of
from clew.expiry.status import expired
from clew.show.stream_table import until

if TYPE_CHECKING:
    from clew.ask.content import Question
    from clew.ask.row import Content
    from clew.expiry.horizon import Hold
    from clew.model import RowId, Status

_MILLISECOND = dt.timedelta(milliseconds=1)
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)


@dataclass(frozen=True, slots=True)
class Expiry:
    """Whether a row may still take part in results, and until when.

    Attributes:
        id: The row.
        status: `alive` or `expired`.
        expires: The event time that the watermark must pass; None if no time says it.
        watermark: How far the query that holds the row longest is; None if it has no watermark.
        why: What holds the row, or why there is no such time.
        query: The query that holds it longest.
        has_end: It will expire once the queries have come far enough.
    """

    id: RowId
    status: Status
    expires: dt.datetime | None
    watermark: dt.datetime | None
    why: str
    query: str | None = None
    has_end: bool = True

    @property
    def stream(self) -> str:
        """The stream of the row."""
        return self.id.stream

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as plain data that JSON can hold."""
        return {
            "stream": self.stream,
            "id": self.id.text,
            "status": self.status,
            "expires": show.plain(self.expires),
            "watermark": show.plain(self.watermark),
            "why": self.why,
            "query": self.query,
        }

    def lines(self) -> list[show.Line]:
        """Show the answer: the status, and what it depends on."""
        lines = [show.Line("headline", STATUS[self.status])]
        if self.expires is not None:
            now = "none yet" if self.watermark is None else show.iso(self.watermark)
            passed = "expired" if self.status == "expired" else "expires"
            text = f"{passed} once the watermark is past {show.iso(self.expires)}; it is {now}"
            lines.append(show.Line("note", text))
        return [*lines, show.Line("note", show.escape(self.why))]

    def __repr__(self) -> str:
        return show.join(self.lines())


def expiries(question: Question, content: Content) -> list[Expiry]:
    """Say when each of some rows of one stream expires, in the order of the content."""
    horizon = horizon_of(question.snapshot)
    holds = horizon.holds(content.stream)
    over = expired(horizon, content.stream, content.table).to_pylist()
    rows = zip(Rows([content]), over, strict=True)
    return [_expiry(row.id, row.time, holds, "expired" if done else "alive") for row, done in rows]


def first_expiries(question: Question, rows: Rows, limit: int | None = None) -> dict[RowId, Expiry]:
    """Say when each of the first rows of an answer expires; rows inside a query are left out."""
    found: dict[RowId, Expiry] = {}
    for content in rows.first(limit):
        if not question.snapshot.is_named(content.stream):
            found.update((each.id, each) for each in expiries(question, content))
    return found


def _expiry(
    row: RowId, time: dt.datetime | None, holds: tuple[Hold, ...], status: Status
) -> Expiry:
    if not holds:
        why = f"no query that may still run reads `{row.stream}`"
        return Expiry(row, status, None, None, why)
    endless = [hold for hold in holds if hold.micros is None]
    if endless:
        hold = endless[0]
        steps = "; ".join(hold.why) or "nothing bounds it"
        why = f"`{hold.query}` may use it at any time: {steps}"
        return Expiry(row, status, None, _moment(hold.watermark_us), why, hold.query, has_end=False)
    waiting = [hold for hold in holds if hold.waits]
    if not waiting:
        return Expiry(row, status, None, None, _arrived(holds, status), holds[0].query)
    hold = max(waiting, key=lambda each: (each.micros or 0) - (each.watermark_us or 0))
    mark, bound = _moment(hold.watermark_us), dt.timedelta(microseconds=hold.micros or 0)
    if time is None:
        why = f"its event time is not known, and `{hold.query}` keeps rows for {until(bound)}"
        return Expiry(row, status, None, mark, why, hold.query)
    ends = time + bound
    why = f"`{hold.query}` keeps rows for {until(bound)} of event time"
    is_past = mark is not None and mark >= ends + _MILLISECOND
    if is_past and status == "alive":
        why += f", and {_arrived(holds, status)}"
    return Expiry(row, status, ends, mark, why, hold.query)


def _arrived(holds: tuple[Hold, ...], status: Status) -> str:
    """Say what becomes of a row by its arrival, whatever its time."""
    names = show.listing([f"`{hold.query}`" for hold in holds if hold.by_arrival])
    if status == "expired":
        return f"{names} is done with a row once it has read it, and it has"
    return f"{names} takes it whenever it is read, and has not read it yet"


def _moment(micros: int | None) -> dt.datetime | None:
    return None if micros is None else _EPOCH + dt.timedelta(microseconds=micros)
