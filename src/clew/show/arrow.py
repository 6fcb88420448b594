"""Columns of Arrow as what a user holds: Python values, pandas frames, ids as text."""

from __future__ import annotations

import struct
from collections.abc import Hashable
from itertools import chain
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd


def to_python(column: pa.ChunkedArray) -> list[Any]:
    """Turn an Arrow column into Python values; maps become dicts where their keys allow."""
    try:
        values = column.to_pylist()
    except (ValueError, OverflowError):  # a date that Python cannot hold, e.g. the year 10000
        values = [_scalar(each) for each in column]
    dtype = column.type
    return [_with_dicts(each, dtype) for each in values] if _has_maps(dtype) else list(values)


def _scalar(value: Any) -> Any:
    """Turn one Arrow value into Python; a date that Python cannot hold becomes text."""
    try:
        return value.as_py()
    except (ValueError, OverflowError):
        dtype = value.type
    if pa.types.is_struct(dtype):
        return {name: _scalar(each) for name, each in value.items()}
    if pa.types.is_map(dtype):
        return [tuple(_scalar(part) for _, part in each.items()) for each in value.values]  # noqa: PD011
    if pa.types.is_list(dtype):
        return [_scalar(each) for each in value.values]  # noqa: PD011
    return value.cast(pa.string()).as_py()


def to_frame(table: pa.Table) -> pd.DataFrame:
    """Turn a table into a pandas frame; columns that pandas cannot hold become objects."""
    try:
        return table.to_pandas()
    except (ValueError, OverflowError):
        import pandas as pd

    columns = {}
    for number, column in enumerate(table.columns):
        try:
            columns[number] = column.to_pandas()
        except (ValueError, OverflowError):  # noqa: PERF203 (there are few columns)
            columns[number] = pd.Series(to_python(column), dtype=object)
    frame = pd.DataFrame(columns)
    frame.columns = pd.Index(table.column_names)
    return frame


def _has_maps(dtype: pa.DataType) -> bool:
    inside = (dtype.field(i).type for i in range(dtype.num_fields))
    return bool(pa.types.is_map(dtype)) or any(_has_maps(each) for each in inside)


def _with_dicts(value: Any, dtype: pa.DataType) -> Any:
    if value is None:
        return None
    if pa.types.is_map(dtype):
        pairs = [(key, _with_dicts(each, dtype.item_type)) for key, each in value]
        hashable = all(isinstance(key, Hashable) for key, _ in pairs)
        return dict(pairs) if hashable else pairs
    if pa.types.is_struct(dtype):
        return {key: _with_dicts(each, dtype.field(key).type) for key, each in value.items()}
    if pa.types.is_list(dtype):
        return [_with_dicts(each, dtype.value_type) for each in value]
    return value


def id_texts(a: Sequence[int], b: Sequence[int]) -> list[str]:
    """Write many ids as text at once."""
    pairs = chain.from_iterable(zip(a, b, strict=True))
    digits = struct.pack(f">{2 * len(a)}q", *pairs).hex()
    return [digits[i : i + 32] for i in range(0, len(digits), 32)]
