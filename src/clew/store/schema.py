"""The types of a stream's columns, over files that need not agree.

A pipeline that was changed and started again writes other columns, or the same column with another
type. `merge` finds one type that holds every value without loss: numbers widen, points in time
become UTC, structs take the fields of both; what has nothing in common becomes text. `sql_type`
spells the result for DuckDB.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

UTC_TIME = pa.timestamp("us", "UTC")

_SQL = {
    pa.bool_(): "BOOLEAN",
    pa.int8(): "TINYINT",
    pa.int16(): "SMALLINT",
    pa.int32(): "INTEGER",
    pa.int64(): "BIGINT",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
    pa.string(): "VARCHAR",
    pa.binary(): "BLOB",
    pa.date32(): "DATE",
    pa.time64("us"): "TIME",
    UTC_TIME: "TIMESTAMP WITH TIME ZONE",
    pa.timestamp("us"): "TIMESTAMP",
}
_MAX_DECIMAL = 38


def quote(identifier: str) -> str:
    """Quote a name for DuckDB.

    Examples:
        >>> quote('the "n" of rows')
        '"the ""n"" of rows"'
    """
    return '"' + identifier.replace('"', '""') + '"'


def normal(dtype: pa.DataType) -> pa.DataType:
    """Return the type that we promise for what a Parquet file holds.

    Spark's older timestamps (INT96) appear in nanoseconds without a zone; they are points in
    time. Nullability is dropped, since another file may differ.
    """
    if pa.types.is_struct(dtype):
        return pa.struct([pa.field(f.name, normal(f.type)) for f in _fields(dtype)])
    if pa.types.is_map(dtype):
        return pa.map_(normal(dtype.key_type), normal(dtype.item_type))
    if pa.types.is_list(dtype) or pa.types.is_large_list(dtype):
        return pa.list_(normal(dtype.value_type))
    if pa.types.is_dictionary(dtype):
        return normal(dtype.value_type)
    if pa.types.is_timestamp(dtype):
        return UTC_TIME if dtype.tz is not None or dtype.unit == "ns" else pa.timestamp("us")
    if pa.types.is_decimal(dtype):
        return pa.decimal128(dtype.precision, dtype.scale)
    if pa.types.is_large_binary(dtype) or pa.types.is_fixed_size_binary(dtype):
        return pa.binary()
    return dtype if dtype in _SQL else pa.string()


def merge(types: Iterable[pa.DataType]) -> pa.DataType:
    """Find one type for a column that has several."""
    return reduce(_merge_two, dict.fromkeys(normal(each) for each in types))


def sql_type(dtype: pa.DataType) -> str:
    """Spell a normal type for DuckDB."""
    if pa.types.is_struct(dtype):
        inside = ", ".join(f"{quote(f.name)} {sql_type(f.type)}" for f in _fields(dtype))
        return f"STRUCT({inside})"
    if pa.types.is_map(dtype):
        return f"MAP({sql_type(dtype.key_type)}, {sql_type(dtype.item_type)})"
    if pa.types.is_list(dtype):
        return f"{sql_type(dtype.value_type)}[]"
    if pa.types.is_decimal(dtype):
        return f"DECIMAL({dtype.precision}, {dtype.scale})"
    return _SQL[dtype]


def unique_names(names: Sequence[str]) -> list[str]:
    """Tell names apart that differ in case only, since DuckDB does not.

    Examples:
        >>> unique_names(["x", "X", "y"])
        ['x', 'X_1', 'y']
    """
    taken: set[str] = set()
    found: list[str] = []
    for name in names:
        candidate, number = name, 0
        while candidate.casefold() in taken:
            number += 1
            candidate = f"{name}_{number}"
        taken.add(candidate.casefold())
        found.append(candidate)
    return found


def _merge_two(one: pa.DataType, two: pa.DataType) -> pa.DataType:
    if one == two:
        return one
    both = (one, two)
    if all(pa.types.is_struct(each) for each in both):
        return _merge_structs(one, two)
    if all(pa.types.is_map(each) for each in both):
        key = _merge_two(one.key_type, two.key_type)
        return pa.map_(key, _merge_two(one.item_type, two.item_type))
    if all(pa.types.is_list(each) for each in both):
        return pa.list_(_merge_two(one.value_type, two.value_type))
    if all(pa.types.is_timestamp(each) or pa.types.is_date(each) for each in both):
        return UTC_TIME
    if all(_is_number(each) for each in both):
        return _merge_numbers(one, two)
    return pa.string()


def _merge_structs(one: pa.DataType, two: pa.DataType) -> pa.DataType:
    types = {f.name: f.type for f in _fields(one)}
    for each in _fields(two):
        known = types.get(each.name)
        types[each.name] = each.type if known is None else _merge_two(known, each.type)
    return pa.struct(list(types.items()))


def _merge_numbers(one: pa.DataType, two: pa.DataType) -> pa.DataType:
    if pa.types.is_floating(one) or pa.types.is_floating(two):
        return pa.float64()
    if pa.types.is_integer(one) and pa.types.is_integer(two):
        return max(one, two, key=lambda each: each.bit_width)
    (whole, scale), (other_whole, other_scale) = _digits(one), _digits(two)
    scale = max(scale, other_scale)
    precision = max(whole, other_whole) + scale
    return pa.decimal128(precision, scale) if precision <= _MAX_DECIMAL else pa.string()


def _digits(dtype: pa.DataType) -> tuple[int, int]:
    if pa.types.is_decimal(dtype):
        return dtype.precision - dtype.scale, dtype.scale
    return len(str(1 << (dtype.bit_width - 1))), 0


def _is_number(dtype: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(dtype) or pa.types.is_floating(dtype) or pa.types.is_decimal(dtype)
    )


def _fields(dtype: pa.DataType) -> list[pa.Field]:
    return [dtype.field(i) for i in range(dtype.num_fields)]
