"""The rows of an answer on a time axis, with the windows of its results.

A lane holds the rows of one stream, in the order of time. Where a lane has more rows than can be
seen, they are counted in bins of equal length. Windows come from the results' own columns; where a
result has none, the query's bound U says how far back its source rows may lie.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from clew import show
from clew.exceptions import QueryError
from clew.model import RowId
from clew.show.drawing.draw import short_id
from clew.show.drawing.network import number
from clew.show.drawing.stages import Stage, lay_out
from clew.show.labels import short_labels
from clew.show.window import NO_TIME, moment, window_columns, window_ends

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from clew.ask.trace import Trace
    from clew.show.drawing.network import Network, Numbers, Part

BINS = 40
"""Into how many bins at most the time from the first row to the last is parted."""

_MOST_WINDOWS = 100
_WIDTH = 40
_MICRO = dt.timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Moment:
    """A row at a point in time: its key in drawings, its id, its time, and a short name."""

    key: str
    id: str
    time: dt.datetime
    label: str


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of the time axis: the first moment in it, and the first behind it."""

    begin: dt.datetime
    end: dt.datetime


@dataclass(frozen=True, slots=True)
class Window(Span):
    """A window of a result: which stream the result is of, and what the window is called."""

    stream: str
    label: str


@dataclass(frozen=True, slots=True)
class Bin(Span):
    """A piece of the time axis, and how many rows of a lane lie in it."""

    count: int


@dataclass(frozen=True, slots=True)
class Lane:
    """The rows of one stream.

    Attributes:
        stream: The stream.
        rows: The first rows, by time.
        left_out: How many more there are.
        bins: Where all of them lie, if some are left out; bins without rows are left out too.
    """

    stream: str
    rows: tuple[Moment, ...]
    left_out: int
    bins: tuple[Bin, ...]


@dataclass(frozen=True, slots=True, repr=False)
class Timeline:
    """The rows of an answer on a time axis.

    Attributes:
        begin: The first point in time of all rows and windows; None if nothing has a time.
        end: The last.
        lanes: The streams, in the order in which rows travel.
        windows: The windows of results, each once.
        untimed: How many rows have no time.
    """

    begin: dt.datetime | None
    end: dt.datetime | None
    lanes: tuple[Lane, ...]
    windows: tuple[Window, ...]
    untimed: int

    def to_dict(self) -> dict[str, Any]:
        """Return the timeline as plain data that JSON can hold."""
        found = {
            "from": self.begin,
            "to": self.end,
            "lanes": [
                {
                    "stream": lane.stream,
                    "rows": [
                        {"key": row.key, "id": row.id, "time": row.time, "label": row.label}
                        for row in lane.rows
                    ],
                    "left_out": lane.left_out,
                    "bins": [
                        {"from": each.begin, "to": each.end, "count": each.count}
                        for each in lane.bins
                    ],
                }
                for lane in self.lanes
            ],
            "windows": [
                {"from": each.begin, "to": each.end, "label": each.label, "stream": each.stream}
                for each in self.windows
            ],
            "untimed": self.untimed,
        }
        plain: dict[str, Any] = show.plain(found)
        return plain

    def lines(self) -> list[show.Line]:
        """Show the timeline as text: one line for each window, row or bin."""
        if self.begin is None or self.end is None:
            return [show.Line("note", "No row of the answer has a time.")]
        head = f"from {show.iso(self.begin)} to {show.iso(self.end)}"
        lines = [show.Line("headline", head)]
        for stream in dict.fromkeys(each.stream for each in self.windows):
            lines.append(show.Line("header", f"windows of {show.escape(stream)}"))
            ours = [each for each in self.windows if each.stream == stream]
            lines += [self._line(each.begin, each.end, each.label) for each in ours]
        for lane in self.lanes:
            if not lane.rows and not lane.left_out:
                continue
            total = show.count(len(lane.rows) + lane.left_out, "row")
            lines.append(show.Line("header", f"{show.escape(lane.stream)}: {total}"))
            if lane.left_out:
                lines += [self._line(e.begin, e.end, show.count(e.count, "row")) for e in lane.bins]
            else:
                lines += [self._line(e.time, e.time, e.label) for e in lane.rows]
        if self.untimed:
            lines.append(show.Line("note", f"{show.count(self.untimed, 'row')} without a time"))
        return lines

    def _line(self, begin: dt.datetime, end: dt.datetime, label: str) -> show.Line:
        assert self.begin is not None
        assert self.end is not None
        length = max((self.end - self.begin) / _MICRO, 1)
        first = int((begin - self.begin) / _MICRO / length * (_WIDTH - 1))
        last = max(first + 1, int((end - self.begin) / _MICRO / length * (_WIDTH - 1)) + 1)
        bar = " " * first + ("=" * (last - first) if end > begin else "*")
        return show.Line("row", f"  {bar:<{_WIDTH}}  {show.iso(begin)}  {show.escape(label)}")

    def __repr__(self) -> str:
        return show.join(self.lines())

    def _repr_html_(self) -> str:
        from clew.show.page import timeline_page

        return timeline_page(self)


def timeline(trace: Trace, limit: int = 100) -> Timeline:
    """Put an answer on a time axis; see `Trace.timeline`.

    Raises:
        QueryError: The limit is negative.
    """
    if limit < 0:
        msg = f"`limit` is a number of rows for each lane, 0 or more; got {limit}."
        raise QueryError(msg)
    network = number(trace, trace.hop_tables, trace.look)
    windows = tuple(_windows(trace, network))
    parts = _in_travel_order(trace, network)
    ends = [int(t) for part in parts for t in _ends(part)]
    ends += [each for w in windows for each in (_micros(w.begin), _micros(w.end))]
    first, last = min(ends, default=0), max(ends, default=0)
    return Timeline(
        moment(first) if ends else None,
        moment(last) if ends else None,
        tuple(_lane(trace, part, limit, first, last) for part in parts),
        windows,
        sum(int((part.time == NO_TIME).sum()) for part in parts),
    )


def _in_travel_order(trace: Trace, network: Network) -> list[Part]:
    layers = lay_out(trace.steps, network.parts).layer
    return sorted(
        network.parts.values(), key=lambda part: (layers[Stage(part.stream)], part.stream)
    )


def _ends(part: Part) -> list[int]:
    timed = part.time[part.time != NO_TIME]
    return [int(timed.min()), int(timed.max())] if len(timed) else []


def _lane(trace: Trace, part: Part, limit: int, first: int, last: int) -> Lane:
    order = np.argsort(part.rank)
    timed = order[part.time[order] != NO_TIME]
    rows = tuple(_moments(trace, part, timed[:limit]))
    left_out = len(timed) - len(rows)
    bins = tuple(_bins(part.time[timed], first, last)) if left_out else ()
    return Lane(part.stream, rows, left_out, bins)


def _moments(trace: Trace, part: Part, rows: Numbers) -> Iterator[Moment]:
    known = part.pick(rows, trace.look)
    names = short_labels(list(known.values()))
    for each in rows.tolist():
        row = RowId(part.stream, int(part.a[each]), int(part.b[each]))
        time = moment(int(part.time[each]))
        if time is not None:
            yield Moment(f"row:{row}", row.text, time, short_id(names.get(row, row.text)))


def _bins(times: Numbers, first: int, last: int) -> Iterator[Bin]:
    width = (last - first) // BINS + 1
    numbers, counts = np.unique((times - first) // width, return_counts=True)
    for number_of, count in zip(numbers.tolist(), counts.tolist(), strict=True):
        begin, end = (moment(first + (number_of + each) * width) for each in (0, 1))
        if begin is not None and end is not None:
            yield Bin(begin, end, count)


def _windows(trace: Trace, network: Network) -> Iterable[Window]:
    """Find the windows of all derived rows, those of one stream by time."""
    derived = {sink for sink, _ in network.edges}
    for stream in sorted(derived):
        part = network.parts[stream]
        found = sorted(_own_windows(part) or _bounds(trace, part))
        for begin, end, label in found[:_MOST_WINDOWS]:
            times = moment(begin), moment(end)
            if times[0] is not None and times[1] is not None:
                yield Window(times[0], times[1], stream, label)


def _own_windows(part: Part) -> set[tuple[int, int, str]]:
    """Return the windows that rows of a stream have as columns."""
    found: set[tuple[int, int, str]] = set()
    for content in part.content:
        for column in window_columns(content):
            sides = [window_ends(content, column, each) for each in ("start", "end")]
            pairs = np.unique(np.stack(sides), axis=1)
            found |= {(b, e, column) for b, e in pairs.T.tolist() if NO_TIME not in (b, e)}
    return found


def _bounds(trace: Trace, part: Part) -> set[tuple[int, int, str]]:
    """Return how far back the source rows of a stream's rows may lie, if that is known."""
    bounds = [each.bound_us for each in trace.steps if each.sink == part.stream]
    known = [each for each in bounds if each is not None]
    if not known or len(known) < len(bounds) or not max(known):
        return set()
    label = f"at most {max(known) * _MICRO} before"
    times = np.unique(part.time[part.time != NO_TIME]).tolist()
    return {(each - max(known), each, label) for each in times}


def _micros(time: dt.datetime) -> int:
    return (time - dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)) // _MICRO
