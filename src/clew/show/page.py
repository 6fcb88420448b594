"""What each kind of answer looks like in a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew import show
from clew.show.axis import axis_svg
from clew.show.html import cell, line, page, scroll, table, text
from clew.show.labels import short_labels
from clew.show.stream_table import cells, header
from clew.show.svg import draw_svg

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.ask.outcome import Replay
    from clew.ask.provenance import Provenance
    from clew.ask.row import Row, Rows
    from clew.ask.streams import Stream
    from clew.ask.trace import Trace
    from clew.show.drawing import Drawing
    from clew.show.timeline import Timeline

SHOWN = 10
"""How many rows a table shows."""


def trace_page(trace: Trace) -> str:
    """Show an answer: a sentence, its rows, its drawing, how far it can be trusted."""
    notes = [line(each.text) for each in trace.notes()]
    rows = [_table(trace.rows)] if len(trace) else []
    picture = [_drawing(trace.drawing())] if len(trace.start) else []
    return page(line(trace.headline, strong=True), *rows, *picture, *notes)


def rows_page(rows: Rows) -> str:
    """Show rows as a table."""
    return page(_table(rows))


def row_page(row: Row) -> str:
    """Show one row: where it is from, and its columns."""
    where = f"{row.stream} {row.label}"
    time = "" if row.time is None else f", {show.iso(row.time)}"
    if not row.known:
        return page(line(f"{where}{time}: the store does not have its content", strong=True))
    columns = [[text(name), cell(value)] for name, value in row.items()]
    return page(line(where + time, strong=True), table(["column", "value"], columns))


def streams_page(streams: Sequence[Stream]) -> str:
    """Show the streams of a store as a table."""
    if not streams:
        return page(line("The store has no streams yet."))
    gaps = dict.fromkeys(gap for each in streams for gap in each.gaps)
    missing = [line(f"missing: {gap}") for gap in gaps]
    rows = [[text(each) for each in cells(stream)] for stream in streams]
    return page(table(header(), rows), *missing)


def stream_page(stream: Stream) -> str:
    """Show what is known of one stream."""
    known = {name: value for name, value in stream.to_dict().items() if value not in (None, [], {})}
    rows = [[text(name), cell(value)] for name, value in known.items() if name != "name"]
    return page(line(stream.name, strong=True), table(["", ""], rows))


def provenance_page(provenance: Provenance) -> str:
    """Show a store: where it is, and its streams."""
    return page(line(provenance.path, strong=True), streams_page(provenance.streams()))


def replay_page(replay: Replay) -> str:
    """Show what came out when a query was run again."""
    first = str(replay).partition("\n")[0]
    found = replay.differences
    rows = [
        [
            text(each.id.text[:8]),
            "new" if each.before is None else "gone" if each.after is None else "changed",
            text(", ".join(each.columns)),
            *(
                "" if side is None else cell({name: side.get(name) for name in each.columns})
                for side in (each.before, each.after)
            ),
        ]
        for each in found[:SHOWN]
    ]
    more = [line(f"and {len(found) - SHOWN:,} more")] if len(found) > SHOWN else []
    changed = [table(["result", "", "columns", "before", "now"], rows)] if rows else []
    return page(line(first, strong=True), *changed, *more)


def drawing_page(drawing: Drawing) -> str:
    """Show a drawing."""
    return page(_drawing(drawing))


def timeline_page(timeline: Timeline) -> str:
    """Show a timeline."""
    if timeline.begin is None:
        return page(line("No row of the answer has a time."))
    note = show.count(timeline.untimed, "row")
    untimed = [line(f"{note} without a time")] if timeline.untimed else []
    return page(scroll("".join(axis_svg(timeline))), *untimed)


def _drawing(drawing: Drawing) -> str:
    return scroll("".join(draw_svg(drawing)))


def _table(rows: Rows) -> str:
    shown = rows[:SHOWN]
    columns = list(dict.fromkeys(name for row in shown for name in row))
    several = len(rows.streams) > 1
    timed = any(row.time is not None for row in shown)
    names = short_labels(shown)
    head = [*(["stream"] if several else []), "row", *(["time"] if timed else []), *columns]
    body = [
        [
            *([text(row.stream)] if several else []),
            text(names[row.id]),
            *(["" if row.time is None else text(show.iso(row.time))] if timed else []),
            *(cell(row[name]) if name in row else "" for name in columns),
        ]
        for row in shown
    ]
    left = rows.total - len(shown)
    return table(head, body) + (line(f"and {left:,} more") if left else "")
