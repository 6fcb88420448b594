"""Packed edges that were damaged, by chance or on purpose.

Sound sets are packed, then changed: other counts, forms, bounds and payloads, rows that are gone
or come twice, columns of other types, and files with other bytes. What comes out must be an error
of the store, or edges that add up: as many as the sets say, in order, between their bounds, and
the same when they are asked for one by one.
"""

from __future__ import annotations

import io
import random
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from clew.exceptions import LimitError, StoreError
from clew.limits import Limits, under
from clew.store import packed as module
from clew.store.edges import EDGES
from clew.store.packed import IDS, PACKED, _to_varints, pack, unpack, unpack_rows
from fuzz.fenced import fenced

if TYPE_CHECKING:
    from collections.abc import Callable

_LIMITS = Limits(seconds=None, memory="64 MB", edges=300_000)
_NUMBERS = [0, 1, 2, 3, 15, 16, 17, 127, 128, 255, 1 << 31, (1 << 32) - 1, 1 << 32, 1 << 62]
_NUMBERS += [(1 << 63) - 1, -(1 << 63), -1, -2, 299_999, 300_001, 1 << 40]
_GAPS = [0, 1, 1, 2, 7, 1 << 62, 1 << 63, (1 << 64) - 1, (1 << 64) - 2, (1 << 64) - 7]


def run(seconds: float, seed: int) -> int:
    """Try damaged sets for so long, and return how many.

    Raises:
        AssertionError: Something else came of it than edges that add up, or a `StoreError`.
    """
    rng = random.Random(seed)
    tried = 0
    until = time.monotonic() + seconds
    with tempfile.TemporaryDirectory() as folder, fenced(), under(_LIMITS):
        while time.monotonic() < until:
            table = _damaged(rng)
            way = rng.randrange(4)
            try:
                if way:
                    _try_table(table, rng)
                else:
                    _try_file(table, rng, Path(folder) / "packed-0.parquet")
            except (StoreError, LimitError):
                pass
            except BaseException as error:
                msg = f"seed {seed}, input {tried}: {type(error).__name__}: {error}\n{_say(table)}"
                raise AssertionError(msg) from error
            tried += 1
    return tried


def _say(table: pa.Table) -> str:
    return f"{table.schema}\n{table.slice(0, 40).to_pydict()}"


def _try_table(table: pa.Table, rng: random.Random) -> None:
    whole = unpack(table)
    _check(table, whole)
    rows = sorted(rng.sample(range(table.num_rows), rng.randint(0, table.num_rows)))
    met = whole.column("source_b").to_pylist()
    near = [rng.choice(met) if met else 0 for _ in range(3)] + [rng.choice(_NUMBERS)]
    numbered = table.append_column("number", pa.array(range(table.num_rows), pa.int64()))
    found = unpack(numbered, rows, np.array(sorted(set(near)), np.int64))
    wanted = unpack(numbered)
    expected = sorted(
        (each["number"], each["source_b"])
        for each in wanted.to_pylist()
        if each["number"] in set(rows) and each["source_b"] in set(near)
    )
    got = sorted((each["number"], each["source_b"]) for each in found.to_pylist())
    assert got == expected, (rows, near)


def _check(table: pa.Table, edges: pa.Table) -> None:
    counts = table.column("count").to_pylist()
    assert edges.num_rows == sum(counts)
    numbered = unpack(table.append_column("number", pa.array(range(len(counts)), pa.int64())))
    positions: dict[int, list[int]] = {}
    for number, position in zip(
        numbered.column("number").to_pylist(), numbered.column("source_b").to_pylist(), strict=True
    ):
        positions.setdefault(number, []).append(position)
    for number, row in enumerate(table.select(["lo", "hi", "count"]).to_pylist()):
        found = positions[number]
        assert found[0] == row["lo"]
        assert found == sorted(set(found))
        assert row["hi"] in (None, found[-1])


def _try_file(table: pa.Table, rng: random.Random, path: Path) -> None:
    held = io.BytesIO()
    pq.write_table(table, held, row_group_size=16 * rng.randint(1, 4))
    data = bytearray(held.getvalue())
    for _ in range(rng.choice([0, 0, 1, 1, 3, 20])):
        data[rng.randrange(len(data))] = rng.choice([0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)])
    if rng.random() < 0.1:
        del data[rng.randrange(len(data)) :]
    path.write_bytes(data)
    rows = rng.sample(range(max(table.num_rows, 1)), min(3, max(table.num_rows, 1)))
    try:
        unpack_rows(str(path), rows)
    except StoreError as error:
        assert str(path) in str(error)  # noqa: PT017 (an error is one of two good ends)


def _damaged(rng: random.Random) -> pa.Table:
    module.COMPRESS_FROM, before = rng.choice([1, 8, 1_024]), module.COMPRESS_FROM
    try:
        table = pack(_edges(rng))
    finally:
        module.COMPRESS_FROM = before
    for _ in range(rng.choice([0, 1, 1, 1, 2, 4, 10])):
        table = rng.choice(_CHANGES)(table, rng)
    return table


def _edges(rng: random.Random) -> pa.Table:
    edges: list[tuple[str, int, int, str, int, int]] = []
    for sink in range(rng.randint(1, 24)):
        start, every = rng.choice([0, sink, 5 * sink, 1 << 40, (1 << 63) - 900]), rng.randint(1, 3)
        size = rng.choice([1, 2, 5, 30, 200])
        kept = (start + i * every for i in range(size) if every > 1 or rng.random() < 0.8)
        edges += [("s", sink, -sink, rng.choice("rq"), 5, each) for each in kept]
    columns = [list(each) for each in zip(*edges, strict=True)] or [[]] * 6
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, EDGES, strict=True)], EDGES)


def _set_cell(table: pa.Table, name: str, row: int, value: Any) -> pa.Table:
    if name not in table.column_names:
        return table
    place = table.column_names.index(name)
    values = table.column(name).to_pylist()
    values[row] = value
    try:
        column = pa.array(values, table.schema.field(name).type)
    except (pa.ArrowInvalid, OverflowError, pa.ArrowTypeError):
        return table
    return table.set_column(place, pa.field(name, column.type), column)


def _any_row(table: pa.Table, rng: random.Random) -> int:
    return rng.randrange(table.num_rows)


def _change_number(table: pa.Table, rng: random.Random) -> pa.Table:
    name = rng.choice(["lo", "hi", "count", "count", "count", "source_a"])
    if not table.num_rows or name not in table.column_names:
        return table
    row = _any_row(table, rng)
    before = table.column(name)[row].as_py()
    near = [before + d for d in (-1, 1, 2)] if type(before) is int else []
    return _set_cell(table, name, row, rng.choice([*_NUMBERS, *near, None]))


def _change_form(table: pa.Table, rng: random.Random) -> pa.Table:
    if not table.num_rows or "form" not in table.column_names:
        return table
    form = rng.choice([*range(12), 127, -1, -8])
    return _set_cell(table, "form", _any_row(table, rng), form)


def _change_payload(table: pa.Table, rng: random.Random) -> pa.Table:
    if not table.num_rows or "payload" not in table.column_names:
        return table
    row = _any_row(table, rng)
    held = table.column("payload")[row].as_py()
    data = bytearray(held if isinstance(held, bytes) else b"")
    way = rng.randrange(6)
    if way == 0:
        data = bytearray(rng.randbytes(rng.choice([1, 2, 5, 40])))
    elif way == 1 and data:
        data[rng.randrange(len(data))] = rng.choice([0, 1, 0x7F, 0x80, 0xFF])
    elif way == 2 and data:
        del data[rng.randrange(len(data)) :]
    elif way == 3:
        data += rng.choice([b"\x80", b"\x01", b"\xff" * 9 + b"\x01", b"\xff" * 30])
    elif way == 4:
        many = rng.choice([10, 1_000, 1 << 20])
        size = rng.choice([many, many + 1, (1 << 32) - 1, 0])
        squeezed = pa.Codec("zstd").compress(b"\x01" * many, asbytes=True)
        data = bytearray(size.to_bytes(4, "little") + squeezed)
        table = _set_cell(table, "form", row, rng.choice([9, 10, 11]))
        if rng.random() < 0.5:
            table = _set_cell(table, "count", row, rng.choice([many + 1, many // 2 + 1, 1 << 40]))
    else:
        return _set_cell(table, "payload", row, None)
    return _set_cell(table, "payload", row, bytes(data))


def _change_gaps(table: pa.Table, rng: random.Random) -> pa.Table:
    """Write gaps that no set has, and numbers beside them that agree: only the sums tell."""
    if not table.num_rows or table.schema != PACKED:
        return table
    row = _any_row(table, rng)
    gaps = [rng.choice(_GAPS) for _ in range(rng.randint(1, 6))]
    end = (table.column("lo")[row].as_py() + sum(gaps)) % (1 << 64)
    data, _ = _to_varints(np.array(gaps, np.uint64))
    table = _set_cell(table, "hi", row, end - (1 << 64) if end >> 63 else end)
    table = _set_cell(table, "count", row, len(gaps) + 1)
    table = _set_cell(table, "form", row, IDS)
    return _set_cell(table, "payload", row, data.tobytes())


def _change_rows(table: pa.Table, rng: random.Random) -> pa.Table:
    if not table.num_rows:
        return table
    rows = list(range(table.num_rows))
    way = rng.randrange(4)
    if way == 0:
        del rows[_any_row(table, rng)]
    elif way == 1:
        rng.shuffle(rows)
    elif way == 2:
        rows += rows[-1:] * rng.choice([1, 15, 16, 40])
    else:
        rows = rows[_any_row(table, rng) :]
    return table.take(pa.array(rows, pa.int64()))


def _change_type(table: pa.Table, rng: random.Random) -> pa.Table:
    name = rng.choice(table.column_names)
    place = table.column_names.index(name)
    way = rng.randrange(4)
    if way == 0 and table.num_columns > 1:
        return table.remove_column(place)
    kind = rng.choice([pa.string(), pa.int8(), pa.int32(), pa.float64(), pa.binary(), pa.null()])
    try:
        column = table.column(name).cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return table
    return table.set_column(place, pa.field(name, kind), column)


_CHANGES: list[Callable[[pa.Table, random.Random], pa.Table]] = [
    _change_number,
    _change_number,
    _change_form,
    _change_payload,
    _change_payload,
    _change_gaps,
    _change_rows,
    _change_type,
]
