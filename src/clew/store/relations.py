"""The rows of a store as something SQL can select from.

A relation is the text of a subquery over exactly the files of some committed batches, with the
files as parameters. Rows are unnested: the user's columns stand beside `_clew_a`, `_clew_b`,
`_clew_segment`, `_clew_time` and `_clew_version`, names that no user's column can have. Files whose
columns differ are read apart and brought to one set of types.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from clew.store.engine import as_pattern
from clew.store.schema import merge, quote, sql_type, unique_names

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

_PLACE = "CAST(file_index AS BIGINT)"


@dataclass(frozen=True, slots=True)
class Relation:
    """A subquery.

    Attributes:
        sql: Its text, to be put behind `FROM`.
        params: The parameters that the text refers to.
        columns: The user's columns and their types.
        renamed: What columns are called here that differ from others in case only.
    """

    sql: str
    params: Mapping[str, Any]
    columns: Mapping[str, pa.DataType]
    renamed: Mapping[str, str] = field(default_factory=dict)


def rows_of(types: Mapping[str, pa.StructType]) -> Relation:
    """Select the rows in some files.

    Args:
        types: The files, oldest first, and the type of the user's columns in each.
    """
    groups: dict[pa.StructType, list[tuple[int, str]]] = {}
    for place, (path, dtype) in enumerate(types.items()):
        groups.setdefault(dtype, []).append((place, path))
    fields = {dtype: _field_names(dtype) for dtype in groups}
    columns = _merged_columns(fields)
    parts: list[str] = []
    params: dict[str, Any] = {}
    for number, (dtype, files) in enumerate(groups.items()):
        params[f"row_files_{number}"] = [as_pattern(path) for _, path in files]
        version = _PLACE
        if len(groups) > 1:
            params[f"versions_{number}"] = [place for place, _ in files]
            version = f"$versions_{number}[{_PLACE} + 1]"
        parts.append(_select(number, version, fields[dtype], columns))
    renamed = {
        dtype.field(i).name: name
        for dtype, named in fields.items()
        for name, (i, _) in named.items()
        if dtype.field(i).name != name
    }
    return Relation(f"({' UNION ALL '.join(parts)})", params, columns, renamed)


def _field_names(dtype: pa.StructType) -> dict[str, tuple[int, pa.DataType]]:
    found = [dtype.field(i) for i in range(dtype.num_fields)]
    names = unique_names([each.name for each in found])
    return {name: (i, each.type) for i, (name, each) in enumerate(zip(names, found, strict=True))}


def _merged_columns(
    fields: Mapping[pa.StructType, Mapping[str, tuple[int, pa.DataType]]],
) -> dict[str, pa.DataType]:
    found: dict[str, list[pa.DataType]] = {}
    spelling: dict[str, str] = {}
    for each in fields.values():
        for name, (_, dtype) in each.items():
            found.setdefault(spelling.setdefault(name.casefold(), name), []).append(dtype)
    return {name: merge(types) for name, types in found.items()}


def _select(
    number: int,
    version: str,
    fields: Mapping[str, tuple[int, pa.DataType]],
    columns: Mapping[str, pa.DataType],
) -> str:
    here = {name.casefold(): i for name, (i, _) in fields.items()}
    wanted = [
        "a AS _clew_a",
        "b AS _clew_b",
        "segment AS _clew_segment",
        "CAST(time AS TIMESTAMP WITH TIME ZONE) AS _clew_time",
        f"{version} AS _clew_version",
        # Of a row that was erased, nothing is left but this.
        '"row" IS NOT NULL AS _clew_known',
    ]
    for name, dtype in columns.items():
        place = here.get(name.casefold())
        value = "NULL" if place is None else f'struct_extract_at("row", {place + 1})'
        wanted.append(f"CAST({value} AS {sql_type(dtype)}) AS {quote(name)}")
    return (
        f"SELECT {', '.join(wanted)} "
        f"FROM read_parquet($row_files_{number}, hive_partitioning = false)"
    )
