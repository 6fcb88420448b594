"""A timeline as SVG: windows as bars, rows as ticks, and bins as bars of different heights."""

from __future__ import annotations

import datetime as dt
from html import escape
from typing import TYPE_CHECKING

from clew import show
from clew.show.picture import (
    ASKED_BORDER,
    ASKED_FILL,
    BORDERS,
    BOX_WIDTH,
    CAPTION,
    DETAIL_SIZE,
    LABEL_SIZE,
    LINE,
    fit,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clew.show.timeline import Lane, Timeline, Window

_FONT = "'DejaVu Sans', 'Segoe UI', Helvetica, Arial, sans-serif"
_NAMES = 150
_AXIS = 620
_LANE = 30
_BAR = 14
_WINDOWS = 20
"""How many windows of all are drawn."""


def axis_svg(timeline: Timeline) -> Iterator[str]:
    """Write a timeline as an element that can stand in a page."""
    if timeline.begin is None or timeline.end is None:
        return
    axis = _Axis(timeline.begin, timeline.end)
    windows = timeline.windows[:_WINDOWS]
    lanes = [lane for lane in timeline.lanes if lane.rows or lane.left_out]
    height = 34 + len(windows) * (_BAR + 6) + len(lanes) * (_LANE + 8)
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_NAMES + _AXIS + 20}" height="{height}" '
        f'viewBox="0 0 {_NAMES + _AXIS + 20} {height}" role="img" font-family="{_FONT}">\n'
    )
    period = f"{show.iso(timeline.begin)} to {show.iso(timeline.end)}"
    yield f"<title>Rows and windows from {escape(period)}</title>\n"
    top = 8
    for window in windows:
        yield _window(window, axis, top)
        top += _BAR + 6
    for lane in lanes:
        yield from _lane(lane, axis, top)
        top += _LANE + 8
    yield from _ends(timeline.begin, timeline.end, top)
    yield "</svg>\n"


class _Axis:
    def __init__(self, begin: dt.datetime, end: dt.datetime) -> None:
        self._begin = begin
        self._length = max(end - begin, dt.timedelta(microseconds=1))

    def x(self, time: dt.datetime) -> float:
        return round(_NAMES + (time - self._begin) / self._length * _AXIS, 1)


def _window(window: Window, axis: _Axis, top: int) -> str:
    x, end = axis.x(window.begin), axis.x(window.end)
    what = f"{window.stream}, {window.label}"
    period = f"{show.iso(window.begin)} to {show.iso(window.end)}"
    return (
        f"<g><title>{_text(what)}\n{escape(period)}</title>{_name(what, top + _BAR - 3)}"
        f'<rect x="{x}" y="{top}" width="{max(end - x, 2):.1f}" height="{_BAR}" rx="3" '
        f'fill="{ASKED_FILL}" stroke="{ASKED_BORDER}"/></g>\n'
    )


def _lane(lane: Lane, axis: _Axis, top: int) -> Iterator[str]:
    total = len(lane.rows) + lane.left_out
    bottom = top + _LANE
    yield _name(f"{lane.stream} ({total:,})", top + _LANE // 2 + 4)
    yield f'<path d="M{_NAMES} {bottom}H{_NAMES + _AXIS}" stroke="{LINE}"/>\n'
    colour = BORDERS["row"]
    most = max((each.count for each in lane.bins), default=1)
    for each in lane.bins:
        x, tall = axis.x(each.begin), max(round(each.count / most * (_LANE - 2)), 1)
        title = f"{show.count(each.count, 'row')}, from {show.iso(each.begin)}"
        width = max(min(axis.x(each.end), _NAMES + _AXIS) - x - 1, 1)
        yield (
            f'<rect x="{x}" y="{bottom - tall}" width="{width:.1f}" height="{tall}" '
            f'fill="{colour}"><title>{escape(title)}</title></rect>\n'
        )
    for row in () if lane.left_out else lane.rows:
        title = f"{_text(row.label)}\n{escape(show.iso(row.time))}"
        yield (
            f'<rect x="{axis.x(row.time) - 1:.1f}" y="{top + 6}" width="3" height="{_LANE - 6}" '
            f'fill="{colour}"><title>{title}</title></rect>\n'
        )


def _ends(begin: dt.datetime, end: dt.datetime, top: int) -> Iterator[str]:
    for x, anchor, time in ((_NAMES, "start", begin), (_NAMES + _AXIS, "end", end)):
        yield (
            f'<text x="{x}" y="{top + 10}" text-anchor="{anchor}" font-size="{DETAIL_SIZE}" '
            f'fill="{CAPTION}">{escape(show.iso(time))}</text>\n'
        )


def _name(name: str, y: int) -> str:
    shown = fit(show.escape(name), LABEL_SIZE, min(_NAMES, BOX_WIDTH) - 10)
    return f'<text x="0" y="{y}" font-size="{LABEL_SIZE}" fill="{CAPTION}">{escape(shown)}</text>'


def _text(value: str) -> str:
    return escape(show.escape(value))
