"""The queries of a store as one flow: sources, steps, named frames, sinks.

Each query's graph is kept with its sink. A stream is one node wherever it is met, so where a query
reads what another writes, their graphs join. Nodes stand in layers in the direction in which rows
travel, and keep their keys and their order from one look to the next.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field, replace
from statistics import mean
from typing import TYPE_CHECKING, Any, Literal

from clew import show
from clew.ask.streams import Stream, describe_stream
from clew.plan.written import label_of
from clew.show.stream_table import until

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from clew.store.reader import Snapshot
    from clew.store.records import Batch, StreamRecord

Kind = Literal["source", "step", "named", "sink"]


@dataclass(frozen=True, slots=True)
class FlowNode:
    """A stream or a step.

    Attributes:
        key: What tells the node apart, the same at every look.
        kind: `source`, `named` or `sink` for a stream; `step` for an operator.
        stream: The stream; None for a step.
        writer: The query that it belongs to; None for a source.
        label: The stream's name, or what the operator is.
        detail: The operator's parameters, or how a source's rows are told apart.
        layer: Its layer, from the left.
        place: Its place in the layer, from the top.
        rows: Of a sink, how many rows are committed.
        edges: Of a sink, how many edges are.
        batches: Of a sink, how many batches are.
        last_batch: Of a sink, the number of the last one.
        committed: Of a sink, when that was committed.
        watermark: Of a sink, the last watermark of its query.
        lag_seconds: By how much the watermark was behind the clock at the last commit.
        bound: The bound U in seconds: how long a source row may take part in its rows.
        why: Why there is no bound, or why provenance is captured as it is.
        capture: How provenance is carried.
        exactness: How answers relate to what really contributed.
    """

    key: str
    kind: Kind
    stream: str | None
    writer: str | None
    label: str
    detail: str = ""
    layer: int = 0
    place: int = 0
    rows: int | None = None
    edges: int | None = None
    batches: int | None = None
    last_batch: int | None = None
    committed: str | None = None
    watermark: dt.datetime | None = None
    lag_seconds: float | None = None
    bound: float | None = None
    why: str | None = None
    capture: str | None = None
    exactness: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the node as plain data that JSON can hold."""
        return {name: show.plain(getattr(self, name)) for name in self.__slots__}

    def facts(self) -> str:
        """Write what is known of a sink on one line."""
        parts = [
            show.count(number, noun)
            for number, noun in (
                (self.rows, "row"),
                (self.edges, "edge"),
                (self.batches, "batch"),
            )
            if number is not None
        ]
        if self.watermark is not None:
            parts.append(f"watermark {show.iso(self.watermark)}")
        if self.bound is not None:
            parts.append(f"U {until(dt.timedelta(seconds=self.bound))}")
        return ", ".join(parts)


@dataclass(frozen=True, slots=True, repr=False)
class Flow:
    """All queries of a store.

    Attributes:
        nodes: The nodes, layer by layer and from top to bottom.
        links: The key of a node, and the key of one that takes its rows.
    """

    nodes: tuple[FlowNode, ...]
    links: tuple[tuple[str, str], ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the flow as plain data that JSON can hold."""
        return {
            "nodes": [each.to_dict() for each in self.nodes],
            "links": [{"source": source, "target": target} for source, target in self.links],
        }

    def lines(self) -> list[show.Line]:
        """Show the flow as text: the sources, then each query with its steps in order."""
        if not self.nodes:
            return [show.Line("note", "The store has no streams yet.")]
        lines = [_stream_line(each) for each in self.nodes if each.kind == "source"]
        for sink in (each for each in self.nodes if each.kind == "sink"):
            lines += [show.Line("note", ""), _stream_line(sink)]
            lines += [
                _step_line(each)
                for each in self.nodes
                if each.writer == sink.stream and each is not sink
            ]
        return lines

    def __repr__(self) -> str:
        return show.join(self.lines())


def _stream_line(node: FlowNode) -> show.Line:
    said = node.facts() or node.detail
    text = f"{node.label} ({node.kind})" + (f": {said}" if said else "")
    return show.Line("header", show.escape(text))


def _step_line(node: FlowNode) -> show.Line:
    what = node.detail if node.kind == "step" else "named frame"
    return show.Line("row", show.escape(f"  {node.label} ({what})" if what else f"  {node.label}"))


def flow_of(snapshot: Snapshot) -> Flow:
    """Join the graphs of all queries of a store."""
    sketch = _Sketch(snapshot)
    for record in snapshot.streams.values():
        sketch.add_stream(record)
    for record in snapshot.streams.values():
        if record.kind == "sink":
            sketch.add_query(record)
    return sketch.laid_out()


@dataclass(slots=True)
class _Sketch:
    """Nodes and links as they are met, before they have a place."""

    snapshot: Snapshot
    nodes: dict[str, FlowNode] = field(default_factory=dict)
    links: dict[tuple[str, str], None] = field(default_factory=dict)

    def add_stream(self, record: StreamRecord) -> None:
        key = _stream_key(record.name)
        self.nodes[key] = _stream_node(key, describe_stream(self.snapshot, record), self.snapshot)

    def add_query(self, record: StreamRecord) -> None:
        """Add the steps of a query, between the streams it reads and the one it fills."""
        writer, graph = record.name, record.graph
        steps: Mapping[int, Any] = {each["id"]: each for each in graph.get("nodes", ())}
        for step in steps.values():
            key = self._key_of(writer, step)
            if key not in self.nodes:
                self.nodes[key] = FlowNode(
                    key,
                    "step",
                    None,
                    writer,
                    str(step["kind"]),
                    label_of(step),
                    exactness=step.get("exactness"),
                )
            for each in step.get("inputs", ()):
                self._link(self._key_of(writer, steps[each]), key)
        last = steps.get(graph.get("sink", -1))
        if last is not None:
            self._link(self._key_of(writer, last), _stream_key(writer))
        else:  # a job of another system: what it read is known, and not how
            for source in record.sources:
                self._link(_stream_key(source), _stream_key(writer))

    def _key_of(self, writer: str, step: Mapping[str, Any]) -> str:
        key = _stream_key(str(step.get("label")))
        if step["kind"] in {"source", "named"} and key in self.nodes:
            return key
        return f"step:{writer}/{step['id']}"

    def _link(self, source: str, target: str) -> None:
        if source != target:
            self.links[source, target] = None

    def laid_out(self) -> Flow:
        """Give each node its layer and its place."""
        layers = _layers(self.nodes, self.links)
        placed: dict[str, FlowNode] = {}
        for layer in range(max(layers.values(), default=-1) + 1):
            here = [key for key in self.nodes if layers[key] == layer]
            before = {key: self._origins(key, placed) for key in here}
            here.sort(key=lambda key: (before[key], key))
            for place, key in enumerate(here):
                placed[key] = replace(self.nodes[key], layer=layer, place=place)
        return Flow(tuple(placed.values()), tuple(self.links))

    def _origins(self, key: str, placed: Mapping[str, FlowNode]) -> float:
        """Return where, from the top, the nodes stand that a node takes rows from."""
        places = [placed[s].place for s, target in self.links if target == key and s in placed]
        return mean(places) if places else 0.0


def _layers(nodes: Iterable[str], links: Iterable[tuple[str, str]]) -> dict[str, int]:
    """Put each node behind all that it takes rows from; a circle is cut where it is first met."""
    inputs: dict[str, set[str]] = {key: set() for key in nodes}
    for source, target in links:
        inputs[target].add(source)
    layers: dict[str, int] = {}
    while len(layers) < len(inputs):
        left = [key for key in inputs if key not in layers]
        ready = [key for key in left if inputs[key] <= layers.keys()] or left[:1]
        for key in ready:
            known = [layers[each] for each in inputs[key] if each in layers and each not in ready]
            layers[key] = max(known, default=-1) + 1
    return layers


def _stream_key(name: str) -> str:
    return f"stream:{name}"


def _stream_node(key: str, stream: Stream, snapshot: Snapshot) -> FlowNode:
    node = FlowNode(
        key,
        _kind(stream),
        stream.name,
        stream.writer,
        stream.name,
        _identity(stream.identity),
        capture=stream.capture,
        exactness=stream.exactness,
    )
    if stream.kind != "sink":
        return node
    last = max(snapshot.batches.get(stream.name, ()), key=lambda each: each.order, default=None)
    return replace(
        node,
        rows=stream.sink_rows,
        edges=stream.edges,
        batches=stream.batches,
        last_batch=None if last is None else last.number,
        committed=None if last is None else last.committed,
        watermark=stream.watermark,
        lag_seconds=_lag(stream.watermark, last),
        bound=None if stream.bound is None else stream.bound.total_seconds(),
        why=_unbounded(stream) or stream.why,
    )


def _kind(stream: Stream) -> Kind:
    return "named" if stream.kind == "named" else "sink" if stream.kind == "sink" else "source"


def _identity(identity: Mapping[str, Any] | None) -> str:
    return "" if identity is None else f"rows told apart by {identity.get('kind')}"


def _lag(watermark: dt.datetime | None, last: Batch | None) -> float | None:
    if watermark is None or last is None:
        return None
    committed = dt.datetime.fromisoformat(last.committed.replace("Z", "+00:00"))
    return max(0.0, (committed - watermark).total_seconds())


def _unbounded(stream: Stream) -> str | None:
    """Say whose rows never expire for a query, and why."""
    found = [
        f"rows of {source} stay alive: {'; '.join(bound['why'])}"
        for source, bound in stream.bounds.items()
        if bound["micros"] is None
    ]
    return "; ".join(found) or None
