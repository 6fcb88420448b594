"""The operators that an answer passed: as lines from a source to a sink, and as a graph.

A writer's graph is kept as plain data: nodes with their inputs. A line follows the inputs from the
sink up to the node that stands for the source, and is written in the order in which rows travel.
`steps_between` has the same nodes without writing out every way, of which there may be very many.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from clew.plan.written import label_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from clew.store.reader import Snapshot
    from clew.store.records import StreamRecord

    Passed = Mapping[tuple[str, str], Collection[str | None]]
    """Pairs of sink and source stream, and the versions of the query that made their edges."""

_Nodes = dict[int, "Mapping[str, Any]"]

ARROW = " -> "
MAX_WAYS = 16
"""How many ways between one source and one sink are written out."""


@dataclass(frozen=True)
class Steps:
    """The operators between a stream and one of the streams that its rows were made from.

    Attributes:
        sink: The stream of the derived rows.
        source: The stream of the rows they were made from.
        writer: The query whose operators these are; None if the store does not know it.
        kinds: The kind of each operator, by its number in the query.
        labels: Its parameters as text; empty if it has none.
        arcs: Which operator hands rows to which; None stands for the source at the beginning of
            an arc and for the sink at its end.
        bound_us: For how many microseconds a source row may take part, if that is known.
    """

    sink: str
    source: str
    writer: str | None = None
    kinds: Mapping[int, str] = field(default_factory=dict)
    labels: Mapping[int, str] = field(default_factory=dict)
    arcs: frozenset[tuple[int | None, int | None]] = frozenset()
    bound_us: int | None = None


def steps_between(snapshot: Snapshot, passed: Passed) -> tuple[Steps, ...]:
    """Describe the operators between pairs of sink and source streams, as graphs.

    Where rows were made by several versions of a query, of which each has operators of its own, the
    query stands for them.
    """
    found = []
    for sink, source in sorted(passed):
        each = [_steps(snapshot, pair, v) for pair, v in _versions(passed, sink, source)]
        steps = each[0] if all(one == each[0] for one in each) else Steps(sink, source)
        found.append(replace(steps, writer=each[0].writer))
    return tuple(found)


def paths(snapshot: Snapshot, passed: Passed) -> tuple[str, ...]:
    """Describe the operators between pairs of sink and source streams.

    Lines come in the order in which rows travel: a query before those that read its sink. The
    operators are those of the versions of a query that made the rows.
    """
    pairs = sorted(passed, key=lambda pair: (pair[1], pair[0]))
    lines: list[str] = []
    for sink, source in _in_travel_order(pairs):
        for pair, version in _versions(passed, sink, source):
            lines += [way for way in _ways(snapshot, pair, version) if way not in lines]
    return tuple(lines)


def _versions(passed: Passed, sink: str, source: str) -> list[tuple[tuple[str, str], str | None]]:
    versions = sorted(passed[sink, source] or {None}, key=str)
    return [((sink, source), version) for version in versions]


def _in_travel_order(pairs: list[tuple[str, str]]) -> list[tuple[str, str]]:
    ordered: list[tuple[str, str]] = []
    left = list(pairs)
    while left:
        sinks = {sink for sink, _ in left}
        ready = [pair for pair in left if pair[1] not in sinks] or left[:1]
        ordered += ready
        left = [pair for pair in left if pair not in ready]
    return ordered


def _steps(snapshot: Snapshot, pair: tuple[str, str], version: str | None) -> Steps:
    sink, source = pair
    nodes, top, targets = _part_of_graph(snapshot, pair, version)
    useful = _leads_to(nodes, targets)
    arcs: set[tuple[int | None, int | None]] = set()
    seen: set[int] = set()
    todo: list[tuple[int, int | None]] = [(top, None)] if top is not None else []
    while todo:
        number, reader = todo.pop()
        if number in targets:
            arcs.add((None, reader))
        elif number in useful:
            here = reader if _names(nodes[number], sink) else number
            arcs.update({(number, reader)} if here == number else ())
            if number not in seen:
                seen.add(number)
                todo += [(each, here) for each in nodes[number].get("inputs", ())]
    met = {each for each, _ in arcs if each is not None}
    writer = snapshot.writer(sink)
    return Steps(
        sink,
        source,
        writer,
        {each: str(nodes[each]["kind"]) for each in sorted(met)},
        {each: label_of(nodes[each]) for each in sorted(met)},
        frozenset(arcs),
        _bound(snapshot, writer, source, version),
    )


def _bound(snapshot: Snapshot, writer: str | None, source: str, version: str | None) -> int | None:
    record = _record(snapshot, writer, version)
    found = (record.bounds.get(source) or {}).get("micros") if record is not None else None
    return found if isinstance(found, int) else None


def _record(snapshot: Snapshot, writer: str | None, version: str | None) -> StreamRecord | None:
    record = snapshot.streams.get(writer) if writer is not None else None
    return None if record is None else record.in_version(version)


def _part_of_graph(
    snapshot: Snapshot, pair: tuple[str, str], version: str | None
) -> tuple[_Nodes, int | None, set[int | None]]:
    """Return a query's nodes, the one that makes the sink's rows, and those of the source."""
    sink, source = pair
    record = _record(snapshot, snapshot.writer(sink), version)
    graph: Mapping[str, Any] = record.graph if record is not None else {}
    nodes = {node["id"]: node for node in graph.get("nodes", ())}
    top = _node_of(snapshot, graph, sink) if snapshot.is_named(sink) else graph.get("sink")
    targets = {node["id"] for node in nodes.values() if _stands_for(node, source)}
    if snapshot.is_named(source):
        targets = {_node_of(snapshot, graph, source)}
    return nodes, top, targets


def _ways(snapshot: Snapshot, pair: tuple[str, str], version: str | None) -> list[str]:
    sink, source = pair
    nodes, top, targets = _part_of_graph(snapshot, pair, version)
    found: list[str] = []
    for way in _climb(nodes, top, targets):
        if len(found) == MAX_WAYS:
            found.append(f"{source}{ARROW}... (more ways){ARROW}{sink}")
            break
        between = [nodes[each] for each in reversed(way) if each not in targets]
        steps = [_describe(each) for each in between if not _names(each, sink)]
        found.append(ARROW.join([source, *steps, sink]))
    return found or [f"{source}{ARROW}{sink}"]


def _climb(
    nodes: Mapping[int, Mapping[str, Any]], top: int | None, targets: set[int | None]
) -> Iterator[list[int]]:
    """Yield the ways from a node up to the targets, without recursion."""
    useful = _leads_to(nodes, targets)
    todo: list[list[int]] = [[top]] if top is not None and top in useful else []
    while todo:
        way = todo.pop()
        if way[-1] in targets:
            yield way
            continue
        inputs = [each for each in nodes[way[-1]].get("inputs", ()) if each in useful]
        todo += [[*way, each] for each in reversed(inputs) if each not in way]


def _leads_to(nodes: Mapping[int, Mapping[str, Any]], targets: set[int | None]) -> set[int | None]:
    """Return the nodes from which a target can be reached, so that no dead end is explored."""
    useful = {each for each in targets if each in nodes}
    growing = True
    while growing:
        new = {
            number
            for number, node in nodes.items()
            if number not in useful and useful.intersection(node.get("inputs", ()))
        }
        useful |= new
        growing = bool(new)
    return useful


def _stands_for(node: Mapping[str, Any], stream: str) -> bool:
    return bool(node.get("kind") == "source" and node.get("label") == stream)


def _names(node: Mapping[str, Any], stream: str) -> bool:
    return bool(node.get("kind") == "named" and node.get("label") == stream)


def _node_of(snapshot: Snapshot, graph: Mapping[str, Any], named: str) -> int | None:
    found = (graph.get("named") or {}).get(named)
    return found if isinstance(found, int) else snapshot.streams[named].node


def _describe(node: Mapping[str, Any]) -> str:
    label = label_of(node)
    return f"{node['kind']} ({label})" if label else str(node["kind"])
