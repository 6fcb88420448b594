"""Read lines of PROV into elements, a block at a time.

Lines that hold one statement each are read by Arrow's own JSON reader, about twice as fast as by
Spark's `from_json` on one core. It knows one schema and fails as a whole, so a block with anything
odd in it, or with documents, is read line by line instead: the same elements come out.
"""

from __future__ import annotations

import gc
import io
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from clew.prov.slow import SlowParser
from clew.prov.words import (
    ACTIVITY,
    EDGE_RELATIONS,
    ELEMENTS,
    END,
    GROUP,
    LETTERS,
    OTHER_RELATIONS,
    THINGS,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

_TEXT = (
    "prov",
    "activity",
    "entity",
    "generatedEntity",
    "usedEntity",
    "collection",
    "job",
    "function",
    "node",
    "time",
    "group",
)
_SCHEMA = pa.schema(
    [*((name, pa.string()) for name in _TEXT), ("used", pa.list_(pa.string())),
     ("generated", pa.list_(pa.string()))]
)  # fmt: skip
_FORM = pj.ParseOptions(explicit_schema=_SCHEMA, unexpected_field_behavior="ignore")
_DEEP = 200
_MICROS = pa.timestamp("us", tz="UTC")


@dataclass(frozen=True, slots=True)
class Parsed:
    """What a block of lines says.

    Attributes:
        elements: The statements that matter, as `ELEMENTS`.
        dead: The lines that could not be read, as `LETTERS`.
        apart: What was left out, as `LETTERS`, if it is kept.
        statements: How many statements that matter there are; a group has one for each name.
        filtered: How many statements were left out: other relations, and attributes.
        foreign: How many lines belong to other jobs.
        ended: Whether the end of the job was announced.
    """

    elements: pa.Table
    dead: pa.Table
    apart: pa.Table
    statements: int
    filtered: int
    foreign: int
    ended: bool


class _OddBlockError(Exception):
    """A block that has to be read line by line."""


class Parser:
    """Reads blocks of lines.

    Args:
        job: Statements of other jobs are left out; None takes all.
        groups: A document is all there is to say about its activities.
        keep_apart: Keep what is left out.
        in_order: Return elements in the order of their lines, for those who care.
    """

    def __init__(
        self,
        job: str | None = None,
        *,
        groups: bool = False,
        keep_apart: bool = False,
        in_order: bool = False,
    ) -> None:
        self._job = job
        self._in_order = in_order
        self._keep_apart = keep_apart
        self._slow = SlowParser(job, groups=groups, keep_apart=keep_apart)

    def parse(self, lines: pa.Array) -> Parsed:
        """Read a block of lines, text or bytes."""
        try:
            return self._fast(_text(lines))
        except (_OddBlockError, pa.ArrowException):
            return self.parse_slowly(lines)

    def parse_slowly(self, lines: pa.Array) -> Parsed:
        """Read a block line by line."""
        with _without_collector():
            found = self._slow.parse(_bytes(lines))
            elements = found.elements()
        return Parsed(
            elements,
            found.letters(),
            found.left_out(),
            _statements(elements),
            found.filtered,
            found.foreign,
            found.ended,
        )

    def _fast(self, lines: pa.Array) -> Parsed:
        table = _read(lines)
        foreign = 0
        if self._job is not None:
            own = pc.fill_null(pc.equal(table["job"], self._job), True)
            foreign = len(table) - (pc.sum(own).as_py() or 0)
            table, lines = (table.filter(own), lines.filter(own)) if foreign else (table, lines)
        kind = table["prov"]
        left_out = pc.is_in(kind, pa.array([*OTHER_RELATIONS, *THINGS]))
        filtered = pc.sum(left_out).as_py() or 0
        parts = [_single(table, relation) for relation in EDGE_RELATIONS]
        parts.append(_groups(table.filter(pc.equal(kind, GROUP))))
        ends = pc.sum(pc.equal(kind, END)).as_py() or 0
        if sum(len(part) for part in parts) + filtered + ends != len(table):
            raise _OddBlockError
        elements = pa.concat_tables(parts)
        if self._in_order:
            elements = elements.take(_order(kind))
        apart = LETTERS.empty_table()
        if self._keep_apart and filtered:
            apart = pa.table({"line": lines.filter(left_out), "reason": kind.filter(left_out)})
        count = _statements(elements)
        letters = LETTERS.empty_table()
        return Parsed(elements, letters, apart, count, filtered, foreign, ends > 0)


@contextmanager
def _without_collector() -> Iterator[None]:
    """Keep Python from looking for cycles again and again among what has none."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _text(lines: pa.Array) -> pa.Array:
    if isinstance(lines, pa.ChunkedArray):
        lines = lines.combine_chunks()
    if pa.types.is_binary(lines.type) or pa.types.is_large_binary(lines.type):
        lines = lines.cast(pa.string())
    else:
        lines.validate(full=True)
    if lines.null_count:
        lines = lines.drop_null()
    return lines


def _bytes(lines: pa.Array) -> list[bytes | None]:
    """Return lines as bytes: Spark hands text over unseen, and it may be none."""
    kind = pa.large_binary() if pa.types.is_large_string(lines.type) else pa.binary()
    found: list[bytes | None] = lines.cast(kind).to_pylist()
    return found


def _read(lines: pa.Array) -> pa.Table:
    """Read one object from each line.

    A line that begins and ends with a brace cannot share an object with its neighbour, since only
    a comma could stand between the two; and one that held two objects would make a row too many.
    """
    if len(lines) == 0:
        return _SCHEMA.empty_table()
    braces = pc.and_(pc.starts_with(lines, "{"), pc.ends_with(lines, "}"))
    if not pc.all(braces).as_py() or _is_deep(lines):
        raise _OddBlockError
    joined = _joined(lines)
    options = pj.ReadOptions(use_threads=False, block_size=len(joined) + 1)
    table = pj.read_json(io.BytesIO(joined), read_options=options, parse_options=_FORM)
    if len(table) != len(lines) or table["prov"].null_count:
        raise _OddBlockError
    return table


def _is_deep(lines: pa.Array) -> bool:
    """Tell whether lines may be nested more deeply than Python reads, which Arrow does not mind."""
    lengths = pc.binary_length(lines)
    if pc.max(lengths).as_py() < _DEEP:
        return False
    long = lines.filter(pc.greater_equal(lengths, _DEEP))
    opened = pc.add(pc.count_substring(long, "["), pc.count_substring(long, "{"))
    return bool(pc.max(opened).as_py() >= _DEEP)


def _joined(lines: pa.Array) -> memoryview:
    whole = pa.ListArray.from_arrays(pa.array([0, len(lines)], pa.int32()), lines)
    text = pc.binary_join(whole, "\n")
    return memoryview(text[0].as_buffer())


def _single(table: pa.Table, relation: str) -> pa.Table:
    """Make elements of the statements of one relation."""
    said = table.filter(pc.equal(table["prov"], relation))
    activity = None
    if relation in {"used", "wasGeneratedBy"}:
        activity = _vertices(said["activity"])
        marked = pc.binary_join_element_wise(ACTIVITY, activity, "")
        thing = _vertices(said["entity"])
        output, source = (marked, thing) if relation == "used" else (thing, marked)
    elif relation == "wasDerivedFrom":
        output, source = _vertices(said["generatedEntity"]), _vertices(said["usedEntity"])
    else:
        output, source = _vertices(said["collection"]), _vertices(said["entity"])
    execution = activity if activity is not None else _execution(said["group"], output)
    nothing = pa.nulls(len(said), pa.string())
    return _elements(said, _ones(output), _ones(source), nothing, execution)


def _order(kind: pa.ChunkedArray) -> pa.Array:
    """Find, for elements laid out relation by relation, the order of their lines."""
    lines = [
        np.flatnonzero(pc.equal(kind, relation).to_numpy()) for relation in (*EDGE_RELATIONS, GROUP)
    ]
    return pa.array(np.argsort(np.concatenate(lines), kind="stable"))


def _execution(group: pa.ChunkedArray, output: pa.ChunkedArray) -> pa.ChunkedArray:
    named = pc.fill_null(pc.not_equal(group, ""), False)
    return pc.if_else(named, group, output)


def _groups(said: pa.Table) -> pa.Table:
    activity = _vertices(said["activity"])
    generated, used = _lists(said["generated"]), _lists(said["used"])
    return _elements(said, generated, used, activity, activity)


def _elements(
    said: pa.Table, outputs: pa.Array, inputs: pa.Array, activity: pa.Array, execution: pa.Array
) -> pa.Table:
    columns = [outputs, inputs, activity, _times(said["time"]), execution]
    return pa.table([*columns, said["function"], said["node"]], schema=ELEMENTS)


def _times(text: pa.ChunkedArray) -> pa.ChunkedArray:
    if text.null_count == len(text):
        return pa.nulls(len(text), pa.int64())
    # Arrow wants a zone; without one, which ISO 8601 allows, the block is read line by line.
    return pc.cast(text, _MICROS).cast(pa.int64())


def _vertices(names: pa.ChunkedArray) -> pa.ChunkedArray:
    """Check that there is a sound name in each place."""
    if names.null_count or pc.any(pc.less(names, "\x02")).as_py():
        raise _OddBlockError
    return names


def _ones(names: pa.ChunkedArray) -> pa.Array:
    """Make a list of each name."""
    flat = names.combine_chunks()
    return pa.ListArray.from_arrays(pa.array(np.arange(len(flat) + 1, dtype=np.int32)), flat)


def _lists(lists: pa.ChunkedArray) -> pa.Array:
    flat = lists.combine_chunks()
    if flat.null_count:
        flat = pc.fill_null(flat, pa.scalar([], pa.list_(pa.string())))
    _vertices(pa.chunked_array([flat.flatten()], pa.string()))
    return flat


def _statements(elements: pa.Table) -> int:
    """Count the edges that were stated: for a group, one for each thing used or generated."""
    single = pc.sum(pc.is_null(elements["activity"])).as_py() or 0
    groups = elements.filter(pc.is_valid(elements["activity"]))
    sizes = [pc.sum(pc.list_value_length(groups[c])).as_py() or 0 for c in ("outputs", "inputs")]
    return single + sum(sizes)
