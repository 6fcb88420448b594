"""From an answer to its drawing."""

from __future__ import annotations

import datetime as dt
import re
from typing import TYPE_CHECKING

import numpy as np

from clew import show
from clew.exceptions import QueryError
from clew.show.drawing.drawing import Drawing, Link, Node
from clew.show.drawing.network import count_rows, number
from clew.show.drawing.shown import choose
from clew.show.drawing.stages import Stage, Stages, lay_out
from clew.show.labels import short_labels
from clew.show.window import moment

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from clew.ask.path import Steps
    from clew.ask.row import Row
    from clew.ask.trace import Trace
    from clew.model import RowId
    from clew.show.drawing.network import Network, Part
    from clew.show.drawing.shown import Shown, Slot

_MAX_DETAIL = 120
_ID = re.compile("[0-9a-f]{32}")


def draw(
    trace: Trace, limit: int = 200, depth: int | None = None, expand: Collection[str] = ()
) -> Drawing:
    """Draw an answer; see `Trace.drawing`.

    Raises:
        QueryError: The limit or the depth is too small.
    """
    _check(limit, depth)
    hops = trace.hop_tables[:depth]
    network = number(trace, hops, trace.look)
    network, stages = _fit(trace, network, limit)
    steps = len(stages.words)
    near = 0 if trace.direction == "backward" else 1
    streams = _from_asked(trace, network, stages)
    shown = choose(network, streams, near, limit - steps, frozenset(expand))
    nodes = _nodes(trace, stages, shown)
    every = network.rows if hops == trace.hop_tables else count_rows(trace, trace.hop_tables)
    return Drawing(
        trace.direction,
        tuple(nodes),
        tuple(_links(network, stages, shown)),
        tuple(_edges(network, shown)),
        1 + max((each.layer for each in nodes), default=-1),
        every,
        sum(1 for each in shown.slots if not each.is_group),
        every - network.rows,
    )


def _check(limit: int, depth: int | None) -> None:
    if limit < 2:
        msg = f"a drawing has at least 2 nodes; got `limit={limit}`."
        raise QueryError(msg)
    if depth is not None and depth < 0:
        msg = f"`depth` is a number of edges, 0 or more, or None for all; got {depth}."
        raise QueryError(msg)


def _fit(trace: Trace, network: Network, limit: int) -> tuple[Network, Stages]:
    """Lay out the layers with as many operators and streams as the limit allows."""
    last = trace.stream if trace.direction == "backward" else None
    stages = lay_out(_steps(trace, network), network.parts, last=last)
    if len(stages.words) + 2 * len(network.parts) <= limit:
        return network, stages
    stages = lay_out(_steps(trace, network), network.parts, last=last, brief=True)
    if len(stages.words) + len(network.parts) <= limit:
        return network, stages
    # More streams than nodes: those furthest away are only counted.
    kept = set(_from_asked(trace, network, stages)[: max(limit // 2, 1)])
    parts = {stream: part for stream, part in network.parts.items() if stream in kept}
    edges = {pair: each for pair, each in network.edges.items() if kept.issuperset(pair)}
    fewer = type(network)(parts, edges, network.asked, network.rows)
    return fewer, lay_out(_steps(trace, fewer), parts, last=last, brief=True)


def _steps(trace: Trace, network: Network) -> list[Steps]:
    return [each for each in trace.steps if (each.sink, each.source) in network.edges]


def _from_asked(trace: Trace, network: Network, stages: Stages) -> list[str]:
    """Order streams by how far they are from the rows asked about, those first."""
    sign = -1 if trace.direction == "backward" else 1
    others = [each for each in network.parts if each != trace.stream]
    return [
        trace.stream,
        *sorted(others, key=lambda each: (sign * stages.layer[Stage(each)], each)),
    ]


def _nodes(trace: Trace, stages: Stages, shown: Shown) -> list[Node]:
    rows = _rows(trace, shown)
    names = short_labels(list(rows.values()))
    found: dict[int, list[tuple[tuple[int, ...], str, Node]]] = {}
    for stage, (kind, label) in stages.words.items():
        layer = stages.layer[stage]
        node = Node(stage.key, "step", layer, 0, stage.stream, None, kind, label, None, False)
        found.setdefault(layer, []).append(((0, stage.number), stage.stream, node))
    for slot in shown.slots:
        layer = stages.layer[Stage(slot.part.stream)]
        node = _group(slot, layer) if slot.is_group else _row(slot, layer, rows, names)
        # Times first; ids count within a stream, after its name.
        order = (1, int(slot.part.time[slot.row]))
        rank = int(slot.part.rank[slot.row])
        found.setdefault(layer, []).append((order, f"{slot.part.stream}\0{rank:020d}", node))
    return [
        _placed(node, place)
        for layer in sorted(found)
        for place, (*_, node) in enumerate(sorted(found[layer], key=lambda each: each[:2]))
    ]


def _placed(node: Node, place: int) -> Node:
    values = {name: getattr(node, name) for name in Node.__slots__}
    return Node(**{**values, "place": place})


def _rows(trace: Trace, shown: Shown) -> dict[str, Row]:
    """Make objects of the rows that are seen, by their keys."""
    seen: dict[str, list[Slot]] = {}
    for slot in shown.slots:
        if not slot.is_group:
            seen.setdefault(slot.part.stream, []).append(slot)
    found: dict[str, Row] = {}
    for slots in seen.values():
        rows = slots[0].part.pick(np.array([each.row for each in slots]), trace.look)
        found.update((each.key, rows[each.row]) for each in slots if each.row in rows)
    return found


def _row(slot: Slot, layer: int, rows: dict[str, Row], names: dict[RowId, str]) -> Node:
    stream, id_text = slot.key.removeprefix("row:").rsplit("/", 1)
    row = rows.get(slot.key)
    label = short_id(id_text if row is None else names[row.id])
    detail = "" if row is None else _content(row)
    time = _moment(slot.part, slot.row)
    return Node(slot.key, "row", layer, 0, stream, id_text, label, detail, 1, slot.is_asked, time)


def _content(row: Row) -> str:
    """Write a row's columns on one line, windows last and the event time not again."""
    columns = {name: value for name, value in row.items() if row.time is None or value != row.time}
    windows = {name: each for name, each in columns.items() if _is_window(each)}
    parts = [f"{name}={show.cell(columns[name])}" for name in columns if name not in windows]
    parts += [f"{name}={_period(each['start'], each['end'])}" for name, each in windows.items()]
    text = ", ".join(parts)
    return text if len(text) <= _MAX_DETAIL else text[: _MAX_DETAIL - 1] + "…"


def _is_window(value: object) -> bool:
    if not isinstance(value, dict):
        return False
    return all(isinstance(value.get(name), dt.datetime) for name in ("start", "end"))


def short_id(name: str) -> str:
    """Leave out the middle of an id; other names are kept.

    Examples:
        >>> short_id("00000000000000ffffffffffffffff01"), short_id("part-0.parquet:17")
        ('00000000…ff01', 'part-0.parquet:17')
    """
    return f"{name[:8]}…{name[-4:]}" if _ID.fullmatch(name) else name


def _group(slot: Slot, layer: int) -> Node:
    stream = slot.part.stream
    first, last = _moment(slot.part, slot.row), _moment(slot.part, slot.last)
    label = f"{slot.count:,} more" if slot.is_rest else show.count(slot.count, "row")
    detail = "" if first is None or last is None else _period(first, last)
    key, asked = slot.key, slot.is_asked
    return Node(key, "group", layer, 0, stream, None, label, detail, slot.count, asked, first)


def _period(first: dt.datetime, last: dt.datetime) -> str:
    """Write from when to when; a date that both have is written once."""
    end = show.iso(last)
    end = end.partition("T")[2] if first.date() == last.date() else end
    return f"{show.iso(first)} to {end}" if first != last else show.iso(first)


def _moment(part: Part, row: int) -> dt.datetime | None:
    return moment(int(part.time[row]))


def _links(network: Network, stages: Stages, shown: Shown) -> Iterable[Link]:
    found: dict[Link, None] = {}
    for pair, sides in network.edges.items():
        sink, source = pair
        for slot in np.unique(shown.of[source][sides[1]]).tolist():
            for stage in stages.entries.get(pair, ()):
                found[Link(shown.slots[slot].key, stage.key)] = None
        for slot in np.unique(shown.of[sink][sides[0]]).tolist():
            for stage in stages.exits.get(pair, ()):
                found[Link(stage.key, shown.slots[slot].key)] = None
    for one, other in stages.arcs:
        if one.step is not None and other.step is not None:
            found[Link(one.key, other.key)] = None
    return found


def _edges(network: Network, shown: Shown) -> Iterable[tuple[str, str]]:
    number_of = max(len(shown.slots), 1)
    for (sink, source), sides in sorted(network.edges.items(), key=lambda each: each[0]):
        both = shown.of[sink][sides[0]] * number_of + shown.of[source][sides[1]]
        for each in np.unique(both).tolist():
            one, other = divmod(each, number_of)
            yield shown.slots[one].key, shown.slots[other].key
