"""The two reducers, over tables of named edges.

Names become numbers, the kernel takes vertices out, numbers become names again. What differs
between local and global, and between the ways to avoid early elimination, is only which vertices
may go and which edges are final: that is what a `Rule` says.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clew.prov.kernel import MOST_PAIRS, Pairs, degrees, eliminate
from clew.prov.words import ACTIVITY, EDGES, FINAL, NO_TIME

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from clew.prov.kernel import Marks, Numbers

_OUTPUT, _INPUT = 1, 2
_LATEST = 2**62


@dataclass(frozen=True, slots=True)
class Rule:
    """Which vertices may go, and which edges are final.

    Attributes:
        single_use: An entity that one function execution made and one used may go at once.
        activities: Activities that were named between two moments alone may go.
        watermark: Things that were last named before it, in microseconds, are named no more.
        eager: Every intermediate vertex may go, as if nothing could name it again.
        end: Nothing more comes: every intermediate vertex may go, and every edge is final.
        flush: Edges between entities are final whatever comes; then an entity that may be in
            some of them has to stay.
    """

    single_use: bool = False
    activities: tuple[int, int] | None = None
    watermark: int | None = None
    eager: bool = False
    end: bool = False
    flush: bool = False


@dataclass(frozen=True, slots=True)
class Graph:
    """Edges between numbered vertices, and what is known of each vertex."""

    names: pa.Array
    pairs: Pairs
    activity: Marks
    last: Numbers
    first: Numbers
    begun: Numbers
    made_whole: Marks
    used_whole: Marks

    def __len__(self) -> int:
        return len(self.names)


def graph_of(edges: pa.Table) -> Graph:
    """Number the vertices of edges."""
    names, output, source = _numbered(edges)
    count = len(names)
    last, first = np.full(count, NO_TIME), np.full(count, _LATEST)
    np.maximum.at(last, output, _numbers(edges["output_time"]))
    np.maximum.at(last, source, _numbers(edges["input_time"]))
    np.minimum.at(first, source, _numbers(edges["input_first"]))
    begun = first.copy()
    np.minimum.at(begun, output, _numbers(edges["output_time"]))
    whole = _numbers(edges["whole"])
    made, used = np.ones(count, bool), np.ones(count, bool)
    made[output[(whole & _OUTPUT) == 0]] = False
    used[source[(whole & _INPUT) == 0]] = False
    helper = edges["helper"].to_numpy()
    pairs = Pairs(output, source, helper.astype(bool) if helper.any() else None)
    activity = pc.starts_with(names, ACTIVITY).to_numpy(zero_copy_only=False)
    return Graph(names, pairs, activity, last, first, begun, made, used)


def _numbered(edges: pa.Table) -> tuple[pa.Array, Numbers, Numbers]:
    both = pa.chunked_array([*edges["output"].chunks, *edges["input"].chunks], pa.string())
    if len(both) == 0:
        nothing = np.zeros(0, np.int64)
        return pa.array([], pa.string()), nothing, nothing
    coded = both.combine_chunks()
    if isinstance(coded, pa.ChunkedArray):  # more text than one array may hold
        coded = coded.cast(pa.large_string()).combine_chunks()
    coded = coded.dictionary_encode()
    numbers = coded.indices.to_numpy().astype(np.int64)
    return coded.dictionary, numbers[: len(edges)], numbers[len(edges) :]


def _numbers(column: pa.ChunkedArray) -> NDArray[np.int64]:
    values: NDArray[np.int64] = column.to_numpy().astype(np.int64, copy=False)
    return values


def reduced(edges: pa.Table, rule: Rule) -> tuple[pa.Table, pa.Table]:
    """Reduce edges.

    Args:
        edges: As `EDGES`.
        rule: Which vertices may go, and which edges are final.

    Returns:
        The edges that are final, as `FINAL`, and those that are not, as `EDGES`.
    """
    if edges.num_rows == 0:
        return FINAL.empty_table(), EDGES.empty_table()
    graph = graph_of(edges)
    pairs = eliminate(*_prepared(graph, rule))
    if pairs.helper is not None:
        pairs = pairs.take(~pairs.helper)
    _, out_of = degrees(pairs, len(graph))
    final = _final(graph, pairs, rule, out_of)
    return _as_final(graph, pairs.take(final)), _as_open(graph, pairs.take(~final))


def _prepared(graph: Graph, rule: Rule) -> tuple[Pairs, int, Marks]:
    """Say what to eliminate from what.

    An execution that made nothing, or used nothing, is no step between entities. It is left out
    as soon as nothing more can be said of it; until then, the entities beside it have to stay,
    since they may turn out to be outputs or inputs.
    """
    pairs, may_go = graph.pairs, _may_go(graph, rule)
    if rule.eager or not graph.activity.any():
        return pairs, len(graph), may_go
    into, out_of = degrees(pairs, len(graph))
    idle = graph.activity & may_go & ((into == 0) | (out_of == 0))
    pairs = pairs.take(~(idle[pairs.output] | idle[pairs.input]))
    unknown = graph.activity & ~may_go
    may_go[pairs.input[unknown[pairs.output]]] = False
    may_go[pairs.output[unknown[pairs.input]]] = False
    return pairs, len(graph), may_go


def _may_go(graph: Graph, rule: Rule) -> Marks:
    entity = ~graph.activity
    may = np.zeros(len(graph), bool)
    if rule.eager:
        may |= True
    if rule.single_use:
        may |= entity & graph.made_whole & graph.used_whole
    if rule.activities is not None:
        since, until = rule.activities
        may |= graph.activity & (graph.begun > since) & (graph.last < until)
    if rule.watermark is not None:
        may |= graph.last < rule.watermark
    if rule.end:
        may |= graph.activity if rule.flush else True
    return may


def _final(graph: Graph, pairs: Pairs, rule: Rule, out_of: Numbers) -> Marks:
    if rule.end:
        return np.ones(len(pairs), bool)
    named = graph.activity[pairs.output] | graph.activity[pairs.input]
    if rule.flush:
        return ~named
    if rule.watermark is None:
        return np.zeros(len(pairs), bool)
    done = graph.last < rule.watermark
    # What was made is made before it is used, so an entity of which no making is known by now is
    # an input, however often it is still used.
    is_input = ~graph.activity & (out_of == 0) & (graph.first < rule.watermark)
    known = done[pairs.output] & (done | is_input)[pairs.input]
    # All edges of an output come at once: then none comes twice, over another path.
    waits = np.zeros(len(graph), bool)
    waits[pairs.output[~known]] = True
    found: Marks = ~waits[pairs.output]
    return found


def _as_final(graph: Graph, pairs: Pairs) -> pa.Table:
    """Name both ends; an activity that had too many sides to go is a thing like others."""
    columns = [graph.names.take(pa.array(ends)) for ends in (pairs.output, pairs.input)]
    if len(pairs) and graph.activity[np.concatenate([pairs.output, pairs.input])].any():
        columns = [pc.utf8_ltrim(each, ACTIVITY) for each in columns]
    return pa.Table.from_arrays([c.cast(pa.string()) for c in columns], schema=FINAL)


def _as_open(graph: Graph, pairs: Pairs) -> pa.Table:
    made = np.where(graph.made_whole[pairs.output], _OUTPUT, 0)
    used = np.where(graph.used_whole[pairs.input], _INPUT, 0)
    helper = np.zeros(len(pairs), bool) if pairs.helper is None else pairs.helper
    names = [
        graph.names.take(pa.array(ends)).cast(pa.string()) for ends in (pairs.output, pairs.input)
    ]
    times = [graph.last[pairs.output], graph.last[pairs.input], graph.first[pairs.input]]
    rest = [pa.array(each) for each in (*times, (made + used).astype(np.int8), helper)]
    return pa.Table.from_arrays([*names, *rest], schema=EDGES)


def spread(elements: pa.Table) -> pa.Table:
    """Make edges of elements: each output with each input.

    A function execution with very many on both sides stays a vertex, so that nobody can fill the
    memory with one line.
    """
    activity = elements["activity"]
    made = pc.list_value_length(elements["outputs"]).to_numpy().astype(np.int64)
    used = pc.list_value_length(elements["inputs"]).to_numpy().astype(np.int64)
    large = (made * used > MOST_PAIRS) & (made > 1) & (used > 1)
    if large.any():
        rest = _products(elements.filter(pa.array(~large)))
        return pa.concat_tables([rest, *_through(elements.filter(pa.array(large)))])
    if len(elements) and activity.null_count == len(elements):
        return _flat(elements)
    return _products(elements)


def _through(large: pa.Table) -> list[pa.Table]:
    """Keep the activities of executions as vertices."""
    marked = pc.binary_join_element_wise(ACTIVITY, large["activity"], "").combine_chunks()
    alone = pa.ListArray.from_arrays(pa.array(np.arange(len(large) + 1, dtype=np.int32)), marked)
    nothing = pa.nulls(len(large), pa.string())
    loose = large.set_column(2, "activity", nothing)
    return [_products(loose.set_column(1, "inputs", alone)),
            _products(loose.set_column(0, "outputs", alone))]  # fmt: skip


def _flat(elements: pa.Table) -> pa.Table:
    """Make edges of single statements, which have one name on each side."""
    ends = [_values(elements[c]) for c in ("outputs", "inputs")]
    return _edges(ends[0], ends[1], _element_times(elements), np.zeros(len(elements), np.int8))


def _products(elements: pa.Table) -> pa.Table:
    outputs, inputs = (elements[c].combine_chunks() for c in ("outputs", "inputs"))
    made, used = (_lengths(each) for each in (outputs, inputs))
    pairs = made * used
    which = np.repeat(np.arange(len(elements)), pairs)
    inside = np.arange(len(which)) - np.repeat(np.cumsum(pairs) - pairs, pairs)
    at = [(np.cumsum(made) - made)[which] + inside // np.maximum(used[which], 1),
          (np.cumsum(used) - used)[which] + inside % np.maximum(used[which], 1)]  # fmt: skip
    ends = [_values(c).take(pa.array(i)) for c, i in zip((outputs, inputs), at, strict=True)]
    whole = np.where(pc.is_valid(elements["activity"]).to_numpy(), _OUTPUT + _INPUT, 0)
    return _edges(ends[0], ends[1], _element_times(elements)[which], whole[which].astype(np.int8))


def _values(lists: pa.Array | pa.ChunkedArray) -> pa.Array:
    flat = lists.combine_chunks() if isinstance(lists, pa.ChunkedArray) else lists
    return flat.flatten()


def _lengths(lists: pa.Array) -> NDArray[np.int64]:
    lengths: NDArray[np.int64] = pc.list_value_length(lists).to_numpy().astype(np.int64)
    return lengths


def _element_times(elements: pa.Table) -> NDArray[np.int64]:
    filled = pc.fill_null(elements["time"], NO_TIME)
    return _numbers(filled)


def _edges(
    output: pa.Array, source: pa.Array, time: NDArray[np.int64], whole: NDArray[np.int8]
) -> pa.Table:
    when, helper = pa.array(time), pa.array(np.zeros(len(time), bool))
    return pa.Table.from_arrays(
        [output, source, when, when, when, pa.array(whole), helper], schema=EDGES
    )
