"""One type for a column that has several."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest

from clew.store.schema import UTC_TIME, merge, normal, sql_type, unique_names

A = pa.struct([("x", pa.int32())])


@pytest.mark.parametrize(
    ("types", "merged"),
    [
        ([pa.int32(), pa.int32()], pa.int32()),
        ([pa.int32(), pa.int64()], pa.int64()),
        ([pa.int64(), pa.float32()], pa.float64()),
        ([pa.int32(), pa.decimal128(5, 2)], pa.decimal128(12, 2)),
        ([pa.decimal128(10, 2), pa.decimal128(12, 4)], pa.decimal128(12, 4)),
        ([pa.decimal128(38, 0), pa.decimal128(38, 10)], pa.string()),
        ([pa.int32(), pa.string()], pa.string()),
        ([pa.bool_(), pa.int32()], pa.string()),
        ([pa.date32(), pa.timestamp("us", "UTC")], UTC_TIME),
        ([pa.timestamp("us"), pa.timestamp("us", "UTC")], UTC_TIME),
        ([A, pa.struct([("y", pa.string())])], pa.struct([("x", pa.int32()), ("y", pa.string())])),
        ([A, pa.struct([("x", pa.string())])], pa.struct([("x", pa.string())])),
        ([A, pa.int32()], pa.string()),
        ([pa.list_(pa.int32()), pa.list_(pa.int64())], pa.list_(pa.int64())),
        (
            [pa.map_(pa.string(), pa.int32()), pa.map_(pa.string(), pa.float64())],
            pa.map_(pa.string(), pa.float64()),
        ),
    ],
    ids=str,
)
def test_a_merged_type_holds_both(types: list[pa.DataType], merged: pa.DataType) -> None:
    assert merge(types) == merged
    assert merge(types[::-1]) == merged or pa.types.is_struct(merged)


@pytest.mark.parametrize(
    ("found", "promised"),
    [
        (pa.timestamp("ns"), UTC_TIME),
        (pa.timestamp("ms", "Europe/Berlin"), UTC_TIME),
        (pa.timestamp("ms"), pa.timestamp("us")),
        (pa.large_string(), pa.string()),
        (pa.null(), pa.string()),
        (pa.dictionary(pa.int32(), pa.string()), pa.string()),
        (pa.list_(pa.field("element", pa.timestamp("ns"), nullable=False)), pa.list_(UTC_TIME)),
    ],
    ids=str,
)
def test_what_files_hold_is_brought_to_few_types(found: pa.DataType, promised: pa.DataType) -> None:
    assert normal(found) == promised


@pytest.mark.parametrize(
    "dtype",
    [
        pa.bool_(),
        pa.int8(),
        pa.decimal128(38, 3),
        pa.binary(),
        pa.date32(),
        UTC_TIME,
        pa.struct([('odd "name"', pa.list_(A)), ("m", pa.map_(pa.string(), A))]),
    ],
    ids=str,
)
def test_duckdb_reads_back_the_type_that_is_spelled(dtype: pa.DataType) -> None:
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")

    found = connection.sql(f"SELECT CAST(NULL AS {sql_type(dtype)}) AS x").to_arrow_table()

    assert normal(found.schema.field("x").type) == dtype


def test_names_that_differ_in_case_are_told_apart() -> None:
    assert unique_names(["a", "A", "a_1", "b"]) == ["a", "A_1", "a_1_1", "b"]
