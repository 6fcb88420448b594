"""The rows and edges of an answer as numbers.

Every row of a stream gets a number, in the order of ids, and an edge is a pair of numbers. So what
a drawing needs to know of a million rows is found with a few sorts of arrays.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from clew.show.window import NO_TIME, times_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from clew.ask.row import Content, Row
    from clew.ask.trace import Look, Trace

Numbers = npt.NDArray[np.int64]

_MOST_LOOKED_UP = 10_000
"""Of more rows on the way than these, only those shown are looked up, and ids order them."""

_EMPTY = pa.table({"a": pa.array([], pa.int64()), "b": pa.array([], pa.int64())})


@dataclass
class Part:
    """The rows of one stream.

    Attributes:
        stream: The stream.
        a, b: Their ids.
        time: When they are, in microseconds, `NO_TIME` where nothing says.
        rank: The place of each row in the order of times and ids.
        content: What is known of some of them.
        at: Where in `content` each row stands; -1 where it does not.
    """

    stream: str
    a: Numbers
    b: Numbers
    time: Numbers
    rank: Numbers
    content: list[Content] = field(default_factory=list)
    at: Numbers = field(default_factory=lambda: np.empty(0, np.int64))

    def __len__(self) -> int:
        return len(self.a)

    def ids(self, rows: Numbers) -> pa.Table:
        """Return the ids of some rows."""
        return pa.table({"stream": [self.stream] * len(rows), "a": self.a[rows], "b": self.b[rows]})

    def pick(self, rows: Numbers, look: Look | None) -> dict[int, Row]:
        """Make objects of some rows, of those whose content can be had."""
        found: dict[int, Row] = {}
        known = [(i, int(self.at[i])) for i in rows.tolist() if self.at[i] >= 0]
        for content in self.content:
            here = [(i, at) for i, at in known if 0 <= at < content.table.num_rows]
            objects = content.pick([at for _, at in here])
            found.update(zip((i for i, _ in here), objects, strict=True))
            size = content.table.num_rows
            known = [(i, at - size) for i, at in known if at >= size]
        unknown = rows[self.at[rows] < 0]
        looked = look(self.stream, self.ids(unknown)) if look and len(unknown) else None
        if looked is not None:
            by_id = {(row.id.a, row.id.b): row for row in looked.pick(range(looked.table.num_rows))}
            pairs = ((i, by_id.get((int(self.a[i]), int(self.b[i])))) for i in unknown.tolist())
            found.update((i, row) for i, row in pairs if row is not None)
        return found


@dataclass(frozen=True)
class Network:
    """The rows of an answer by stream, and its edges by pair of sink and source stream.

    Attributes:
        parts: The rows.
        edges: For each pair, the numbers of the sink rows and of the source rows.
        asked: The numbers of the rows asked about.
        rows: How many rows there are in all, also beyond the depth.
    """

    parts: dict[str, Part]
    edges: dict[tuple[str, str], tuple[Numbers, Numbers]]
    asked: Numbers
    rows: int


def number(trace: Trace, hops: Sequence[pa.Table], look: Look | None) -> Network:
    """Number the rows that some levels of edges connect.

    Args:
        trace: The answer.
        hops: The levels of its edges.
        look: Looks up rows on the way.
    """
    sides: dict[str, list[pa.Table]] = {trace.stream: [_start(trace)]}
    pairs = [(*pair, edges) for hop in hops for *pair, edges in _by_pair(hop)]
    for sink, source, edges in pairs:
        sides.setdefault(sink, []).append(_side(edges, "sink"))
        sides.setdefault(source, []).append(_side(edges, "source"))
    numbered = {stream: _number(trace, stream, found, look) for stream, found in sides.items()}
    turns = {stream: iter(numbers) for stream, (_, numbers) in numbered.items()}
    asked = next(turns[trace.stream])
    edges_of: dict[tuple[str, str], list[tuple[Numbers, Numbers]]] = {}
    for sink, source, _ in pairs:
        edges_of.setdefault((sink, source), []).append((next(turns[sink]), next(turns[source])))
    parts = {stream: part for stream, (part, _) in numbered.items()}
    joined = {
        pair: (np.concatenate([s for s, _ in found]), np.concatenate([s for _, s in found]))
        for pair, found in edges_of.items()
    }
    return Network(parts, joined, asked, sum(map(len, parts.values())))


def count_rows(trace: Trace, hops: Iterable[pa.Table]) -> int:
    """Count the rows that levels of edges connect, with those asked about."""
    tables = [_start(trace, with_stream=True)]
    for hop in hops:
        tables += [_side(hop, side, with_stream=True) for side in ("sink", "source")]
    every = pa.concat_tables(tables)
    return int(every.group_by(every.column_names).aggregate([]).num_rows)


def _by_pair(hop: pa.Table) -> list[tuple[Any, ...]]:
    """Part edges by the streams that they connect."""
    names = [hop.column(side).dictionary_encode().combine_chunks() for side in ("sink", "source")]
    codes = [np.asarray(_array(each).indices).astype(np.int64) for each in names]
    words = [_array(each).dictionary.to_pylist() for each in names]
    both = codes[0] * len(words[1]) + codes[1]
    parted = []
    for each in np.unique(both):
        sink, source = divmod(int(each), len(words[1]))
        edges = hop if (both == each).all() else hop.filter(pa.array(both == each))
        parted.append((words[0][sink], words[1][source], edges))
    return parted


def _array(found: Any) -> Any:
    return found.chunk(0) if isinstance(found, pa.ChunkedArray) else found


def _start(trace: Trace, *, with_stream: bool = False) -> pa.Table:
    names = {"_clew_a": "a", "_clew_b": "b"}
    found = [each.table.select(list(names)) for each in trace.start.contents]
    table = pa.concat_tables(found).rename_columns(list(names.values())) if found else _EMPTY
    streams = pa.array([trace.stream] * table.num_rows, pa.string())
    return table.add_column(0, "stream", streams) if with_stream else table


def _side(edges: pa.Table, side: str, *, with_stream: bool = False) -> pa.Table:
    columns = [*([side] if with_stream else []), f"{side}_a", f"{side}_b"]
    names = [*(["stream"] if with_stream else []), "a", "b"]
    return edges.select(columns).rename_columns(names)


def _number(
    trace: Trace, stream: str, sides: Sequence[pa.Table], look: Look | None
) -> tuple[Part, list[Numbers]]:
    """Number the rows of a stream, and say which number each id on each side has."""
    a, b, numbers = _distinct(sides)
    rows = (*trace.start.contents, *trace.rows.contents)
    contents = [each for each in rows if each.stream == stream]
    part = Part(stream, a, b, np.full(len(a), NO_TIME), np.arange(len(a)))
    part.at = np.full(len(a), -1, np.int64)
    if not contents and look is not None and len(a) <= _MOST_LOOKED_UP:
        found = look(stream, part.ids(np.arange(len(a))))
        contents = [] if found is None else [found]
    _describe(part, contents)
    part.rank[np.lexsort((part.rank, part.time))] = np.arange(len(a))
    return part, numbers


def _describe(part: Part, contents: list[Content]) -> None:
    """Say of rows where their content is, and when they were."""
    before = 0
    part.content = contents
    for each in contents:
        ids = each.table.select(["_clew_a", "_clew_b"]).rename_columns(["a", "b"])
        own = pa.table({"a": part.a, "b": part.b})
        _, _, (ours, theirs) = _distinct([own, ids])
        back = np.full(max(ours.max(initial=-1), theirs.max(initial=-1)) + 1, -1, np.int64)
        back[ours] = np.arange(len(part))
        numbers = back[theirs]
        is_here = numbers >= 0
        part.time[numbers[is_here]] = times_of(each)[is_here]
        part.at[numbers[is_here]] = before + np.flatnonzero(is_here)
        before += each.table.num_rows


def _distinct(sides: Sequence[pa.Table]) -> tuple[Numbers, Numbers, list[Numbers]]:
    """Number distinct ids in their order; return both halves, and the numbers on each side."""
    a = np.concatenate([_numbers(each.column("a")) for each in sides])
    b = np.concatenate([_numbers(each.column("b")) for each in sides])
    # Halves of ids need 64 bits each; their places among all halves fit into one number together.
    halves_a, place_a = np.unique(a, return_inverse=True)
    halves_b, place_b = np.unique(b, return_inverse=True)
    both, numbers = np.unique(place_a * max(len(halves_b), 1) + place_b, return_inverse=True)
    high, low = np.divmod(both, max(len(halves_b), 1))
    ends = np.cumsum([each.num_rows for each in sides])[:-1]
    return halves_a[high], halves_b[low], np.split(numbers, ends)


def _numbers(column: Any) -> Numbers:
    return np.asarray(column.to_numpy(), np.int64)
