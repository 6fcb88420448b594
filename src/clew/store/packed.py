"""Edges in little space: one row per set of positions.

A result is made from many rows of a few segments, so a packed file has one row per sink row and
segment, and in it the positions as a set. A set is its smallest position and the gaps from each
position to the next: windows that slide over a stream then share gaps with the window before, and
a set that is one interval has no gaps worth writing. `pack` chooses for each set the shortest of
four forms; `docs/reference/store.md` describes them byte by byte. Start at `pack` and `unpack`.
"""

from __future__ import annotations

import os
import uuid
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from clew.exceptions import StoreError
from clew.limits import BYTES_PER_EDGE, check_bytes, check_edges
from clew.store.edges import COLUMNS, EDGES, is_packed
from clew.store.engine import vanished
from clew.store.layout import unreadable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from numpy.typing import ArrayLike, NDArray

    _Ints = NDArray[np.int64]
    _Words = NDArray[np.uint64]
    _Bytes = NDArray[np.uint8]
    _Flags = NDArray[np.bool_]

_T = TypeVar("_T")

INTERVAL, INTERVALS, IDS, DELTA = range(4)
"""The forms of a set; `COMPRESSED` is added when its payload went through zstd as well."""
COMPRESSED = 8
BLOCK = 16
"""No row at a multiple of this is a delta, so one row is read with at most 15 others."""
ROW_GROUP = 3_072 * BLOCK
COMPRESS_FROM = 1_024
"""Payloads of so many bytes are worth a try with zstd."""
MAX_EDGES_AT_ONCE = 4_000_000
"""How many edges of a batch are in memory together, at about 200 bytes each."""

PACKED = pa.schema(
    [
        pa.field("sink", pa.string(), nullable=False),
        pa.field("sink_a", pa.int64(), nullable=False),
        pa.field("sink_b", pa.int64(), nullable=False),
        pa.field("source", pa.string(), nullable=False),
        pa.field("source_a", pa.int64(), nullable=False),
        pa.field("lo", pa.int64(), nullable=False),
        pa.field("hi", pa.int64()),
        pa.field("count", pa.int64(), nullable=False),
        pa.field("form", pa.int8(), nullable=False),
        pa.field("payload", pa.large_binary()),
    ]
)
_UNPAID = PACKED.remove(PACKED.get_field_index("payload"))
_KEY = ("sink", "sink_a", "sink_b", "source", "source_a")
_SET = ("lo", "hi", "count", "form", "payload")
_NAME = "packed-0.parquet"
_NEVER = np.iinfo(np.int64).max
_BYTES_PER_POSITION = 48
"""What a position takes while it is decoded."""
_MOST_ROWS = 1 << 20
"""No row group is larger: one is read as a whole."""
_LONGEST = 10
"""How many bytes a number has at most."""
LONGEST_NAME = 255
"""How many bytes the name of a stream has at most: it is the name of a file."""
_PAYLOADS_AT_ONCE = 1_024
"""How many payloads are decoded before their lengths are added up."""
_BYTES_PER_BYTE = 8
"""What a byte of a payload takes while it is decoded: each may be a number."""


# Packing


def pack(edges: pa.Table) -> pa.Table:
    r"""Turn edges into sets, in the order and the form that need the least space.

    Args:
        edges: Columns `sink`, `sink_a`, `sink_b`, `source`, `source_a` and `source_b`, without
            nulls. An edge that is there twice is packed once.

    Returns:
        The sets, in the columns of `PACKED`.

    Examples:
        >>> edges = {"sink": ["s"] * 7, "sink_a": [9] * 7, "sink_b": [9] * 7, "source": ["r"] * 7}
        >>> edges |= {"source_a": [5] * 7, "source_b": [1, 2, 3, 4, 6, 7, 8]}
        >>> packed = pack(pa.table(edges))
        >>> packed.select(["lo", "hi", "count", "payload"]).to_pylist()
        [{'lo': 1, 'hi': 8, 'count': 7, 'payload': b'\x04\x01'}]
    """
    sets = _collect(edges.unify_dictionaries())
    lo = sets.positions[sets.start]
    hi = sets.positions[sets.start + sets.count - 1]
    # Differences of 64-bit numbers wrap around, here and below, and come out right nevertheless.
    gappy = hi - lo != sets.count - 1
    form = np.full(len(lo), INTERVAL, np.int8)
    payload: pa.Array = pa.nulls(len(lo), pa.large_binary())
    rows = np.flatnonzero(gappy)
    if len(rows):
        form[rows], values, number = _choose(sets, rows)
        data, sizes = _to_varints(values)
        lengths = np.zeros(len(lo), np.int64)
        lengths[rows] = _sums(sizes, _offsets(number))
        payload = _compress(form, lengths, data)
    columns = [*sets.key, lo, pa.array(hi, mask=~gappy), sets.count, form, payload]
    return pa.table([pa.array(each) for each in columns], PACKED)


@dataclass(frozen=True, slots=True)
class _Sets:
    """Sets in file order: what they belong to, and where their positions are."""

    key: list[pa.Array | _Ints]
    positions: _Ints
    start: _Ints
    count: _Ints


def _collect(edges: pa.Table) -> _Sets:
    """Find the sets among edges, and put them in file order."""
    if any(column.null_count for column in edges.columns):
        msg = "edges without a stream or an id cannot be packed; got a null"
        raise ValueError(msg)
    sinks, sink = _names(edges.column("sink"))
    sources, source = _names(edges.column("source"))
    ids = ("sink_a", "sink_b", "source_a", "source_b")
    sink_a, sink_b, source_a, positions = (edges.column(name).to_numpy() for name in ids)
    columns = [sink * len(sources) + source, sink_a, sink_b, source_a]
    # One key stands for four. Should it ever be equal for two sets, they may be split: no edge is
    # lost, since what begins a set is seen in the columns themselves.
    came = np.lexsort((positions, _mix(columns)))
    columns, positions = [each[came] for each in columns], positions[came]
    begins = _changes(columns)
    once = begins | _changes([positions])
    if not once.all():
        columns = [each[once] for each in columns]
        positions, begins, came = positions[once], begins[once], came[once]
    start = np.flatnonzero(begins)
    count = np.diff(np.append(start, len(positions)))
    columns = [each[start] for each in columns]
    order = _file_order(columns, positions[start], came[start])
    pair, sink_a, sink_b, source_a = (each[order] for each in columns)
    sink, source = np.divmod(pair, max(len(sources), 1))
    key = [sinks.take(pa.array(sink)), sink_a, sink_b, sources.take(pa.array(source)), source_a]
    return _Sets(key, positions, start[order], count[order])


def _file_order(columns: list[_Ints], lo: _Ints, came: _Ints) -> _Ints:
    """Find the order of sets in the file.

    By segment and smallest position: a set then follows the one that it most likely overlaps, and
    few row groups hold the neighbourhood of a source row. Sink ids are hashes, so no order serves
    them as well. Where there are more segments than sink rows, as among derived rows with hashes
    for ids, nothing overlaps; such sets stay in the order in which their edges came.
    """
    pair, sink_a, sink_b, source_a = columns
    pairs, pair = np.unique(pair, return_inverse=True)
    is_scattered = np.zeros(len(pairs), np.bool_)
    for each in range(len(pairs)):
        own = pair == each
        sinks = _distinct(_mix([sink_a[own], sink_b[own]]))
        is_scattered[each] = sinks < _distinct(source_a[own])
    return np.lexsort((sink_a, lo, np.where(is_scattered[pair], came, source_a), pair))


def _choose(sets: _Sets, rows: _Ints) -> tuple[_Ints, _Words, _Ints]:
    """Choose the form of sets with gaps; return forms, numbers to write, and how many for each."""
    number = sets.count[rows] - 1
    bounds = _offsets(number)
    at = _ranges(sets.start[rows], number)
    gaps = (sets.positions[at + 1] - sets.positions[at]).view(np.uint64)
    runs, run_bounds = _runs(gaps, bounds)
    follows = (rows % BLOCK != 0) & (np.diff(rows, prepend=-2) == 1)
    # Two guesses at how many gaps of the set before come again: those from this set's smallest
    # position on, if the window slid; as many as there may be, if the pattern is the same.
    lo_of_next = np.append(sets.positions[sets.start[rows[1:]]], _NEVER)
    skipped = _sums(sets.positions[at] < np.repeat(lo_of_next, number), bounds)
    slid = _confirm(gaps, bounds, np.where(follows, _shift(number - skipped), 0))
    same = _confirm(gaps, bounds, np.where(follows, np.minimum(_shift(number), number), 0))

    cost = _offsets(_varint_sizes(gaps))
    costs = [_sums(_varint_sizes(runs), run_bounds), cost[bounds[1:]] - cost[bounds[:-1]]]
    for kept in (slid, same):
        rest = cost[bounds[1:]] - cost[bounds[:-1] + kept]
        costs.append(np.where(kept > 0, rest, _NEVER))
    best = np.argmin(costs, axis=0)
    form = np.array([INTERVALS, IDS, DELTA, DELTA])[best]
    begin = np.choose(best, [run_bounds[:-1], bounds[:-1], bounds[:-1] + slid, bounds[:-1] + same])
    many = np.where(form == INTERVALS, run_bounds[1:], bounds[1:]) - begin
    values = np.empty(many.sum(), np.uint64)
    to = _offsets(many)[:-1]
    for numbers, own in ((runs, form == INTERVALS), (gaps, form != INTERVALS)):
        values[_ranges(to[own], many[own])] = numbers[_ranges(begin[own], many[own])]
    return form, values, many


def _runs(gaps: _Words, bounds: _Ints) -> tuple[_Words, _Ints]:
    """Turn gaps into lengths of runs and of the holes after them; the last run is left out."""
    holes = np.flatnonzero(gaps != 1)
    owner = np.searchsorted(bounds, holes, "right") - 1
    before = np.maximum(_shift(holes, -1), bounds[owner] - 1)
    runs = np.column_stack([(holes - before).view(np.uint64), gaps[holes] - np.uint64(1)])
    return runs.ravel(), 2 * _offsets(np.bincount(owner, minlength=len(bounds) - 1))


def _confirm(gaps: _Words, bounds: _Ints, kept: _Ints) -> _Ints:
    """Return `kept` where a set begins with so many last gaps of the one before, else 0."""
    kept = np.where((kept > 0) & (kept <= np.diff(bounds)), kept, 0)
    own = _ranges(bounds[:-1], kept)
    differ = gaps[own] != gaps[_ranges(bounds[:-1] - kept, kept)]
    return np.where(_sums(differ, _offsets(kept)) == 0, kept, 0)


def _compress(form: NDArray[np.int8], lengths: _Ints, data: _Bytes) -> pa.Array:
    """Cut the bytes into payloads, and compress the long ones where it helps."""
    buffers = [None, pa.py_buffer(_offsets(lengths)), pa.py_buffer(data)]
    payload = pa.Array.from_buffers(pa.large_binary(), len(lengths), buffers)
    long = np.flatnonzero(lengths >= COMPRESS_FROM)
    if len(long):
        texts = payload.to_pylist()
        codec = pa.Codec("zstd")
        for row in long.tolist():
            size = len(texts[row])
            smaller = size.to_bytes(4, "little") + codec.compress(texts[row], asbytes=True)
            if len(smaller) < size:
                texts[row] = smaller
                form[row] += COMPRESSED
        payload = pa.array(texts, pa.large_binary())
    return pc.if_else(pa.array(lengths > 0), payload, None)


# Unpacking


def unpack(
    packed: pa.Table, rows: Sequence[int] | _Ints | None = None, positions: _Ints | None = None
) -> pa.Table:
    """Turn sets into edges again.

    Args:
        packed: Sets, in the columns of `PACKED`; all of a row group, from its first row on, so
            that a set finds those before it. Further columns are kept.
        rows: The rows to turn; None for all. Of the others only those are decoded that these
            rows build on.
        positions: The positions to look for; None for all.

    Returns:
        The edges, in no certain order.

    Raises:
        StoreError: The sets are not as `pack` makes them.

    Examples:
        >>> edges = {"sink": ["s"] * 2, "sink_a": [9] * 2, "sink_b": [9] * 2, "source": ["r"] * 2}
        >>> packed = pack(pa.table(edges | {"source_a": [5, 5], "source_b": [1, 3]}))
        >>> unpack(packed).column("source_b").to_pylist()
        [1, 3]
    """
    _check(packed)
    packed = packed.combine_chunks()
    wanted = np.arange(packed.num_rows) if rows is None else np.asarray(rows, np.int64)
    near = None if positions is None else np.unique(positions)
    form = packed.column("form").to_numpy()
    is_interval = form[wanted] == INTERVAL
    parts = [
        _decode_intervals(packed, wanted[is_interval], near),
        _decode_gaps(packed, wanted[~is_interval], near),
    ]
    owner, found = (np.concatenate(each) for each in zip(*parts, strict=True))
    names = [*_KEY, *(name for name in packed.column_names if name not in {*_KEY, *_SET})]
    edges = packed.select(names).take(pa.array(owner))
    return edges.add_column(len(_KEY), "source_b", pa.array(found))


def _check(packed: pa.Table) -> None:
    """See that sets are what they may be, before anything is made as large as they say."""
    _check_columns(packed, PACKED)
    form, count, lo = (packed.column(name).to_numpy() for name in ("form", "count", "lo"))
    _require((form >= 0) & (form & ~(DELTA | COMPRESSED) == 0) & (form != COMPRESSED))
    _require(count > 0)
    # The last position is one, too: the sum may not wrap around. With gaps it is `hi`.
    _require((count - 1 <= _NEVER - np.maximum(lo, 0)) | (form != INTERVAL))
    has_hi = packed.column("hi").is_valid().to_numpy()
    _require(has_hi == (form != INTERVAL))
    hi = pc.fill_null(packed.column("hi"), 0).to_numpy()
    room = hi.view(np.uint64) - lo.view(np.uint64)
    _require(((hi > lo) & ((count - 1).view(np.uint64) <= room)) | ~has_hi)


def _check_columns(table: pa.Table, schema: pa.Schema) -> None:
    for field in schema:
        _require(np.array(table.column_names.count(field.name) == 1))
        column = table.column(field.name)
        _require(np.array(_is_kind(column.type, field.type)))
        _require(np.array(field.nullable or not column.null_count))
        if pa.types.is_string(field.type):
            for chunk in column.chunks:
                texts = chunk.dictionary if pa.types.is_dictionary(chunk.type) else chunk
                longest = pc.max(pc.binary_length(texts)).as_py() or 0
                _require(np.array(longest <= LONGEST_NAME))


def _is_kind(found: pa.DataType, wanted: pa.DataType) -> bool:
    """Tell whether a type is the one that a column should have, however it is laid out."""
    if pa.types.is_integer(wanted):
        return bool(found == wanted)
    if pa.types.is_dictionary(found):
        found = found.value_type
    text = pa.types.is_string(wanted)
    kinds = [pa.string(), pa.large_string()] if text else [pa.binary(), pa.large_binary()]
    return found in kinds


def _total(counts: _Ints) -> float:
    """Add up numbers that may be too large for their type."""
    return float(counts.astype(np.float64).sum())


def _decode_intervals(packed: pa.Table, rows: _Ints, near: _Ints | None) -> tuple[_Ints, _Ints]:
    lo, count = (packed.column(name).to_numpy()[rows] for name in ("lo", "count"))
    if near is None:
        check_edges(_total(count))
        return np.repeat(rows, count), _ranges(lo, count)
    first = np.searchsorted(near, lo)
    count = np.searchsorted(near, lo + (count - 1), "right") - first
    check_edges(_total(count))
    return np.repeat(rows, count), near[_ranges(first, count)]


def _decode_gaps(packed: pa.Table, wanted: _Ints, near: _Ints | None) -> tuple[_Ints, _Ints]:
    lo, count = (packed.column(name).to_numpy() for name in ("lo", "count"))
    hi = pc.fill_null(packed.column("hi"), 0).to_numpy()
    if near is not None:
        first = np.searchsorted(near, lo[wanted])
        wanted = wanted[np.searchsorted(near, hi[wanted], "right") > first]
    if not len(wanted):
        return wanted, wanted
    form = packed.column("form").to_numpy()
    rows = _with_chains(form % COMPRESSED == DELTA, wanted)
    parts, held = [], 0
    for portion in _split(rows, form % COMPRESSED == DELTA, count):
        parts.append(_decode_portion(packed, portion, wanted, near))
        held += len(parts[-1][0])
        check_edges(held)
    owner, found = (np.concatenate(each) for each in zip(*parts, strict=True))
    return owner, found


def _split(rows: _Ints, is_delta: _Flags, count: _Ints) -> Iterator[_Ints]:
    """Part sets so that few are in memory together, and each is with those that it builds on."""
    # A row without its predecessor is damage, which `_restore` finds.
    begins = np.flatnonzero(~is_delta[rows] | (np.diff(rows, prepend=-2) != 1))
    bounds = np.append(begins, len(rows))
    if len(begins) and np.diff(bounds).max() > BLOCK:
        raise damaged()
    first, held = 0, 0.0
    for start, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        size = _total(count[rows[start:end]])
        if start > first and held + size > MAX_EDGES_AT_ONCE:
            yield rows[first:start]
            first, held = start, 0.0
        held += size
    yield rows[first:]


def _decode_portion(
    packed: pa.Table, rows: _Ints, wanted: _Ints, near: _Ints | None
) -> tuple[_Ints, _Ints]:
    lo, count, form = (packed.column(name).to_numpy() for name in ("lo", "count", "form"))
    hi = pc.fill_null(packed.column("hi"), 0).to_numpy()
    number = count[rows] - 1
    payloads = _payloads(packed.column("payload"), form, rows, number)
    values, many = _from_varints(payloads)
    _require_room(form[rows] % COMPRESSED, number, many)
    check_edges(_total(count[rows]) * _BYTES_PER_POSITION / BYTES_PER_EDGE)
    gaps = _restore(form[rows] % COMPRESSED, number, values, many)
    # A running sum over all sets, moved so that each one begins at its smallest position.
    first = _offsets(count[rows])[:-1]
    steps = np.zeros(count[rows].sum(), np.uint64)
    steps[_ranges(first + 1, number)] = gaps
    sums = np.cumsum(steps)
    found = (sums - np.repeat(sums[first] - lo[rows].view(np.uint64), count[rows])).view(np.int64)
    is_wanted = np.zeros(packed.num_rows, np.bool_)
    is_wanted[wanted] = True
    _require((found[first + number] == hi[rows]) | ~is_wanted[rows])
    rises = np.append(True, found[1:] > found[:-1])
    rises[first] = True
    _require(rises)
    owner = np.repeat(rows, count[rows])
    keep = is_wanted[owner] if near is None else is_wanted[owner] & np.isin(found, near)
    return owner[keep], found[keep]


def _with_chains(is_delta: _Flags, wanted: _Ints) -> _Ints:
    """Add the rows that deltas build on."""
    needed = np.zeros(len(is_delta), np.bool_)
    needed[wanted] = True
    for _ in range(BLOCK):
        more = needed[1:] & is_delta[1:] & ~needed[:-1]
        if not more.any():
            return np.flatnonzero(needed)
        needed[:-1] |= more
    raise damaged()


def _require_room(form: _Ints, number: _Ints, many: _Ints) -> None:
    """See that sets are as large as their payloads make them, before there is room for them."""
    kept = np.where(form >= IDS, number - many, number)
    _require((kept >= 0) & ((form != IDS) | (kept == 0)))
    _require((kept <= _shift(number)) | (form != DELTA))
    _require((many % 2 == 0) & (many // 2 <= number) | (form != INTERVALS))


def _restore(form: _Ints, number: _Ints, values: _Words, many: _Ints) -> _Words:
    """Give back the gaps of sets, each delta's predecessor being the row before it."""
    bounds = _offsets(number)
    gaps = np.ones(bounds[-1], np.uint64)
    starts = _offsets(many)[:-1]
    kept = np.where(form >= IDS, number - many, number)
    own = form >= IDS
    gaps[_ranges((bounds[:-1] + kept)[own], many[own])] = values[_ranges(starts[own], many[own])]
    own = form == INTERVALS
    runs = values[_ranges(starts[own], many[own])]
    _put_holes(gaps, bounds[:-1][own], number[own], runs, many[own])
    is_delta = form == DELTA
    index = np.arange(len(form))
    depth = index - np.maximum.accumulate(np.where(is_delta, 0, index))
    for each in range(1, depth.max() + 1):
        own = depth == each
        to = _ranges(bounds[:-1][own], kept[own])
        gaps[to] = gaps[_ranges(bounds[:-1][own] - kept[own], kept[own])]
    return gaps


def _put_holes(gaps: _Words, first: _Ints, number: _Ints, runs: _Words, many: _Ints) -> None:
    """Write the gaps of sets of intervals, given lengths of runs and of holes in turn."""
    owner = np.repeat(np.arange(len(first)), many // 2)
    sums = _offsets(runs[0::2].view(np.int64))
    before = sums[_offsets(many // 2)[:-1]]
    last_of_run = sums[1:] - before[owner] - 1
    _require((last_of_run >= 0) & (last_of_run < number[owner]))
    gaps[first[owner] + last_of_run] = runs[1::2] + np.uint64(1)


def _payloads(payload: pa.ChunkedArray, form: _Ints, rows: _Ints, number: _Ints) -> pa.Array:
    """Return the payloads of some rows as they were before zstd."""
    chosen = pc.fill_null(payload.take(pa.array(rows)).cast(pa.large_binary()), b"")
    is_compressed = form[rows] >= COMPRESSED
    lengths = pc.binary_length(chosen).to_numpy()
    # Two numbers of ten bytes at most for each gap; zstd is only used where it makes less of them.
    _require(lengths <= 20 * number.astype(np.float64))
    check_bytes(_total(lengths) * _BYTES_PER_BYTE)
    if not is_compressed.any():
        return chosen.combine_chunks()
    texts = chosen.to_pylist()
    codec = pa.Codec("zstd")
    for row in np.flatnonzero(is_compressed).tolist():
        size = int.from_bytes(texts[row][:4], "little")
        _require(np.array(size <= 20 * int(number[row])))
        check_edges(size / BYTES_PER_EDGE)
        try:
            texts[row] = codec.decompress(texts[row][4:], size, asbytes=True)
        except (OSError, pa.ArrowInvalid) as error:
            raise damaged() from error
    return pa.array(texts, pa.large_binary())


def _require(is_so: _Flags) -> None:
    if not np.all(is_so):
        raise damaged()


def damaged() -> StoreError:
    """Say that a packed file is not as one should be."""
    return StoreError(
        "a packed set of edges does not add up, so its file is damaged or was written by a newer "
        "version of clew.\n\nUpgrade clew, or restore the file from a backup."
    )


# Files


def unpack_rows(path: str, rows: Sequence[int], positions: _Ints | None = None) -> pa.Table:
    """Turn chosen rows of a packed file into edges, reading their row groups only.

    Args:
        path: The file.
        rows: The numbers of the rows in the file.
        positions: The positions to look for; None for all.

    Raises:
        StoreError: The file is gone or damaged.
    """
    with _named(path), pa.OSFile(path) as file:
        metadata = pq.read_metadata(file)
        bounds = _offsets(_group_sizes(metadata))
        chosen = np.asarray(rows, np.int64)
        group = np.searchsorted(bounds, chosen, "right") - 1
        parts = []
        for each in np.unique(group).tolist():
            own = chosen[group == each] - bounds[each]
            parts.append(unpack(_read_sets(file, metadata, each, own), own, positions))
        return pa.concat_tables(parts)


def _group_sizes(metadata: pq.FileMetaData) -> list[int]:
    sizes = [metadata.row_group(each).num_rows for each in range(metadata.num_row_groups)]
    _require(np.array([0 <= each <= _MOST_ROWS for each in sizes]))
    return sizes


def _read_sets(file: pa.NativeFile, metadata: pq.FileMetaData, group: int, rows: _Ints) -> pa.Table:
    """Read the sets of a row group; payloads only of some rows, and of those that they build on.

    A file may have a long text once and name it in many rows. So texts stay in their dictionary
    while they are read, and payloads are measured before any is copied out of it.
    """
    names = [each.name for each in _UNPAID]
    sets = _by_dictionary(
        file, metadata, lambda parquet: parquet.read_row_group(group, columns=names)
    )
    _check_columns(sets, _UNPAID)
    for name in ("sink", "source"):
        if not pa.types.is_dictionary(sets.column(name).type):
            place = sets.column_names.index(name)
            sets = sets.set_column(place, name, sets.column(name).dictionary_encode())
    needed = np.zeros(sets.num_rows, np.bool_)
    form = sets.column("form").to_numpy()
    needed[_with_chains(form % COMPRESSED == DELTA, rows)] = True
    payloads = _by_dictionary(
        file, metadata, lambda parquet: _read_payloads(parquet, group, needed)
    )
    return sets.append_column("payload", payloads)


def _by_dictionary(
    file: pa.NativeFile, metadata: pq.FileMetaData, read: Callable[[pq.ParquetFile], _T]
) -> _T:
    """Read texts by dictionary where Arrow can.

    What the file says of its columns is not asked: Arrow ends the process if that is damaged.
    """
    texts = ["sink", "source", "payload"]
    with pq.ParquetFile(file, metadata=metadata, read_dictionary=texts) as parquet:
        try:
            return read(parquet)
        except OSError as error:
            if "Not yet implemented" not in str(error):
                raise
    with pq.ParquetFile(file, metadata=metadata) as parquet:
        return read(parquet)


def _read_payloads(parquet: pq.ParquetFile, group: int, needed: _Flags) -> pa.ChunkedArray:
    """Read the payloads of a row group; null where they are not needed.

    Raises:
        LimitError: They need more memory than there may be.
    """
    parts: list[pa.Array] = []
    at, held = 0, 0
    read = parquet.iter_batches(_PAYLOADS_AT_ONCE, row_groups=[group], columns=["payload"])
    for batch in read:
        column = batch.column("payload")
        _require(np.array(_is_kind(column.type, pa.large_binary())))
        own = needed[at : at + len(column)]
        at += len(column)
        if not own.any():
            parts.append(pa.nulls(len(column), pa.large_binary()))
            continue
        chosen = column.take(pa.array(np.arange(len(column)), mask=~own))
        held += _length(chosen)
        check_bytes(held)
        parts.append(chosen.cast(pa.large_binary()))
    _require(np.array(at == len(needed)))
    return pa.chunked_array(parts, pa.large_binary())


def _length(texts: pa.Array) -> int:
    """Add up the lengths of texts, without copying them out of their dictionary."""
    if pa.types.is_dictionary(texts.type):
        lengths = pc.binary_length(texts.dictionary).take(texts.indices)
    else:
        lengths = pc.binary_length(texts)
    return pc.sum(lengths.cast(pa.int64())).as_py() or 0


def read_edges(path: Path) -> pa.Table:
    """Read all edges of a file, packed or not.

    Raises:
        StoreError: The file is gone or damaged.
    """
    with _named(str(path)):
        if not is_packed(str(path)):
            table = pq.read_table(path, partitioning=None)
            return table.select(list(COLUMNS)).cast(EDGES)
        parts = [EDGES.empty_table()]
        with pa.OSFile(str(path)) as file:
            metadata = pq.read_metadata(file)
            for group, size in enumerate(_group_sizes(metadata)):
                edges = unpack(_read_sets(file, metadata, group, np.arange(size)))
                parts.append(edges.select(list(COLUMNS)).cast(EDGES))
        return pa.concat_tables(parts)


@contextmanager
def _named(path: str) -> Iterator[None]:
    """Name the file in what is said about it."""
    try:
        yield
    except FileNotFoundError as error:
        raise vanished(path) from error
    except OSError as error:
        raise unreadable(path, error) from error
    except StoreError as error:
        msg = f"`{path}` cannot be read: {error}"
        raise StoreError(msg) from error
    except (pa.ArrowException, KeyError, IndexError, UnicodeError, MemoryError) as error:
        msg = f"`{path}` is not a file of edges: {error}\n\nRestore it from a backup."
        raise StoreError(msg) from error


def pack_folder(folder: Path) -> int:
    """Pack the edges of a batch that is not committed yet, if that makes them smaller.

    May be called again after it was interrupted anywhere: raw files go only once the packed one
    is on disk, whole and under its own name.

    Args:
        folder: Where Spark wrote the edges of the batch, and nothing else.

    Returns:
        The size of the folder's Parquet files in bytes.
    """
    for draft in folder.glob(f".{_NAME}.*.tmp"):
        draft.unlink()
    target = folder / _NAME
    raw = sorted(each for each in folder.glob("*.parquet") if each != target)
    if not target.exists() and raw:
        _put_packed(target, raw)
    if target.exists():
        for path in [*raw, folder / "_SUCCESS"]:
            path.unlink(missing_ok=True)
            (folder / f".{path.name}.crc").unlink(missing_ok=True)
    return _size(folder.glob("*.parquet"))


def _put_packed(target: Path, raw: list[Path]) -> None:
    """Write a packed file so that it appears whole, or not at all if it would not be smaller."""
    draft = target.parent / f".{target.name}.{uuid.uuid4().hex}.tmp"
    try:
        _write(draft, raw)
        if _size([draft]) < _size(raw):
            _sync(draft)
            draft.replace(target)
            _sync(target.parent)
    finally:
        draft.unlink(missing_ok=True)


def _write(path: Path, raw: list[Path]) -> None:
    portions = map(pack, _portions(raw))
    first = next(portions)
    with pq.ParquetWriter(path, PACKED, **_encodings(first)) as writer:
        for packed in chain([first], portions):
            writer.write_table(packed, row_group_size=ROW_GROUP)


def _portions(raw: list[Path]) -> Iterator[pa.Table]:
    """Read edges, so many at a time that memory does not depend on the size of a batch."""
    held: list[pa.Table] = []
    for path in raw:
        with pq.ParquetFile(path, read_dictionary=["sink", "source"]) as file:
            for batch in file.iter_batches(MAX_EDGES_AT_ONCE, columns=list(COLUMNS)):
                if held and sum(map(len, held)) + len(batch) > MAX_EDGES_AT_ONCE:
                    yield pa.concat_tables(held, promote_options="permissive")
                    held = []
                held.append(pa.Table.from_batches([batch]))
    yield pa.concat_tables(held or [EDGES.empty_table()], promote_options="permissive")


def _encodings(packed: pa.Table) -> dict[str, Any]:
    """Choose how Parquet writes each column: by dictionary where values come back."""
    names = ("sink_a", "sink_b", "source_a", "lo", "count")
    columns = {name: packed.column(name).to_numpy() for name in names}
    few = packed.num_rows // 2
    repeated = [name for name, values in columns.items() if _distinct(values) <= few]
    if np.count_nonzero(np.diff(columns["lo"]) < 0) <= few // 8 and "lo" in repeated:
        repeated.remove("lo")  # in order, hence differences say less than places in a dictionary
    others = ["hi", *(name for name in names if name not in repeated)]
    return {
        "compression": "zstd",
        "use_dictionary": ["sink", "source", "form", *repeated],
        "column_encoding": {
            **dict.fromkeys(others, "DELTA_BINARY_PACKED"),
            "payload": "DELTA_LENGTH_BYTE_ARRAY",
        },
    }


def _size(paths: Iterable[Path]) -> int:
    return sum(path.stat().st_size for path in paths)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# Arrays of numbers


def _names(column: pa.ChunkedArray) -> tuple[pa.Array, _Ints]:
    """Return the different names, sorted, and for each row the place of its name among them."""
    codes = column.combine_chunks()
    if not pa.types.is_dictionary(codes.type):
        codes = codes.dictionary_encode()
    order = pc.sort_indices(codes.dictionary)
    rank = np.empty(len(order), np.int64)
    rank[order.to_numpy()] = np.arange(len(order))
    return codes.dictionary.take(order), rank[codes.indices.to_numpy()]


def _mix(columns: list[_Ints]) -> _Words:
    """Make one number of several, almost surely another for other ones."""
    mixed = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        mixed = (mixed ^ column.view(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(32)
    return mixed


def _changes(columns: Sequence[NDArray[Any]]) -> _Flags:
    """Tell where any column is another than in the row before; the first row always is."""
    changed = np.zeros(len(columns[0]), np.bool_)
    changed[:1] = True
    for column in columns:
        changed[1:] |= column[1:] != column[:-1]
    return changed


def _distinct(values: NDArray[Any]) -> int:
    return int(np.count_nonzero(_changes([np.sort(values)])))


def _offsets(counts: ArrayLike) -> _Ints:
    """Return where each of several stretches begins, and where the last one ends."""
    return np.append(0, np.cumsum(counts, dtype=np.int64))


def _sums(values: ArrayLike, bounds: _Ints) -> _Ints:
    """Sum up the values of each stretch."""
    sums = _offsets(values)
    return sums[bounds[1:]] - sums[bounds[:-1]]


def _ranges(starts: _Ints, counts: _Ints) -> _Ints:
    """Put `start`, `start + 1`, ... of several stretches one after the other."""
    bounds = _offsets(counts)
    return np.repeat(starts - bounds[:-1], counts) + np.arange(bounds[-1])


def _shift(values: _Ints, first: int = 0) -> _Ints:
    """Return for each value the one before it."""
    return np.append(first, values)[:-1]


def _varint_sizes(values: _Words) -> _Ints:
    sizes = np.ones(len(values), np.int64)
    largest = int(values.max(initial=0))
    for bits in range(7, 64, 7):
        if largest >> bits:
            sizes += values >= np.uint64(1 << bits)
    return sizes


def _to_varints(values: _Words) -> tuple[_Bytes, _Ints]:
    """Write numbers with seven bits to a byte, low ones first; return the size of each, too."""
    sizes = _varint_sizes(values)
    starts = _offsets(sizes)
    data = np.empty(starts[-1], np.uint8)
    for each in range(sizes.max(initial=0)):
        own = sizes > each
        digits = (values[own] >> np.uint64(7 * each)).astype(np.uint8) & 0x7F
        data[starts[:-1][own] + each] = digits | np.where(sizes[own] > each + 1, 0x80, 0)
    return data, sizes


def _from_varints(payloads: pa.Array) -> tuple[_Words, _Ints]:
    """Read all numbers of some payloads; return how many each has, too."""
    _, offsets, content = payloads.buffers()
    bounds = np.frombuffer(offsets, np.int64)[payloads.offset :][: len(payloads) + 1]
    data = np.frombuffer(content or b"", np.uint8)[bounds[0] : bounds[-1]]
    bounds = bounds - bounds[0]
    is_last = data < 0x80
    _require(is_last[bounds[1:][np.diff(bounds) > 0] - 1])
    ends = np.flatnonzero(is_last)
    starts = _shift(ends + 1)
    place = np.arange(len(data)) - np.repeat(starts, ends + 1 - starts)
    _require(place < _LONGEST)
    digits = (data & 0x7F).astype(np.uint64) << (7 * place).astype(np.uint64)
    values = np.add.reduceat(digits, starts) if len(starts) else digits
    return values, _sums(is_last, bounds)
