"""Rows of a stream: found by SQL, whatever their columns are and were."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from clew.ask.provenance import open_store
from clew.exceptions import QueryError, RowNotFoundError, StoreError, UnknownStreamError
from clew.model import RowId
from store.build import StoreBuilder, at, row
from store.road import FILE_0

if TYPE_CHECKING:
    from pathlib import Path

    from clew.ask.provenance import Provenance

UTC = dt.timezone.utc


def test_rows_come_in_order_of_time_with_their_identity(road: Provenance) -> None:
    rows = road.rows("reports")

    assert [each.time for each in rows] == [
        at(clock) for clock in ("08:00:00", "08:00:05", "08:00:10", "08:00:15", "08:00:40")
    ]
    third = rows[2]
    assert third == {"car": 7, "speed": 0, "pos": 5}
    assert (third.id, third.segment, third.position) == (RowId("reports", 0, 3), FILE_0, 3)


def test_a_row_written_in_two_batches_is_one_row(road: Provenance) -> None:
    assert road.rows("reports", where="car = 7").ids() == [
        RowId("reports", 0, 0),
        RowId("reports", 0, 3),
    ]


def test_a_derived_row_has_no_segment_and_no_position(road: Provenance) -> None:
    [found] = road.rows("accidents")

    assert (found.segment, found.position, found.time) == (None, None, None)
    assert found.label == "00000000000000050000000000000005"


def test_conditions_order_and_limit_are_sql(road: Provenance) -> None:
    rows = road.rows("stopped", where="n >= 1 -- all", order_by="n DESC, car -- odd", limit=3)

    assert [(each["car"], each["n"]) for each in rows] == [(7, 2), (8, 2), (7, 1)]
    assert rows.total == 4


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_below_one_is_refused(road: Provenance, limit: int) -> None:
    with pytest.raises(QueryError, match=f"at least 1, or None for all rows; got {limit}"):
        road.rows("stopped", limit=limit)


def test_no_row_matching_gives_an_empty_answer_with_the_columns(road: Provenance) -> None:
    rows = road.rows("stopped", where="car = 1")

    assert (len(rows), rows.total) == (0, 0)
    assert rows.to_arrow().column_names == [
        *("stream", "id", "segment", "position", "time"),
        *("car", "n"),
    ]
    assert repr(rows) == "row  car  n"


def test_a_stream_without_rows_is_empty(tmp_path: Path) -> None:
    builder = StoreBuilder(tmp_path)
    builder.sink("stopped", ["reports"])

    assert list(open_store(tmp_path).rows("stopped", where="car = 1")) == []


@pytest.mark.parametrize(
    "where",
    ["cra = 7", "car = ", "car = 7; DROP TABLE x", "sum(car) = 1", "car = $1", "car LIKE 7 ESCAPE"],
)
def test_a_condition_that_duckdb_refuses_lists_the_columns(road: Provenance, where: str) -> None:
    with pytest.raises(QueryError) as error:
        road.rows("reports", where=where)

    assert repr(where) in str(error.value) or "more than one expression" in str(error.value)
    assert "The columns are: `car`, `speed`, `pos`." in str(error.value)


def test_an_order_that_duckdb_refuses_is_named(road: Provenance) -> None:
    with pytest.raises(QueryError, match="does not accept the order 'sped'"):
        road.rows("reports", order_by="sped")


def test_a_condition_cannot_read_other_files(road: Provenance) -> None:
    with pytest.raises(QueryError, match="Permission Error"):
        road.rows("reports", where="EXISTS (FROM read_text('/etc/hostname'))")


def test_an_unknown_stream_lists_those_there_are(road: Provenance) -> None:
    with pytest.raises(UnknownStreamError, match="no stream `cars`; it has: `accidents`, `rep"):
        road.rows("cars")


def test_one_row_is_looked_up_by_its_id(road: Provenance) -> None:
    found = road.row("stopped", "00000000000000460000000000000001")

    assert found == {"car": 7, "n": 2}
    assert found.id == RowId("stopped", 70, 1)


def test_a_row_that_is_not_there_names_the_batches_that_are(road: Provenance) -> None:
    with pytest.raises(RowNotFoundError, match=r"batches 0 to 1 of `stopped` \(run 3f2a90bc\)"):
        road.row("stopped", "f" * 32)


def test_users_columns_may_have_the_names_of_ours(tmp_path: Path) -> None:
    builder = StoreBuilder(tmp_path)
    columns = {"a": 1, "b": 2, "time": "t", "segment": "s", "id": 9, "row": "r", "place": 3}
    plain = row(5, 6)
    builder.batch("s", 0, rows={"s": [{**plain, "row": columns}]})

    rows = open_store(tmp_path).rows("s", where="a = 1 AND b = 2 AND \"row\" = 'r'", order_by="id")

    assert dict(rows[0]) == columns
    assert rows.to_arrow().to_pylist() == [
        {
            "stream": "s",
            "id": "00000000000000050000000000000006",
            "segment": None,
            "position": None,
            "time": None,
            "a": 1,
            "b": 2,
            "row.time": "t",
            "row.segment": "s",
            "row.id": 9,
            "row": "r",
            "place": 3,
        }
    ]


def test_odd_column_names_can_be_asked_for(tmp_path: Path) -> None:
    builder = StoreBuilder(tmp_path)
    plain = row(5, 6)
    builder.batch("s", 0, rows={"s": [{**plain, "row": {'say "hi"': 1, "naïve name": 2}}]})
    provenance = open_store(tmp_path)

    [found] = provenance.rows("s", where='"say ""hi""" = 1 AND "naïve name" = 2')

    assert found.id == provenance.backward("s", {'say "hi"': 1}).start[0].id


def test_columns_that_differ_in_case_keep_their_values(tmp_path: Path) -> None:
    builder = StoreBuilder(tmp_path)
    plain = row(5, 6)
    builder.batch("s", 0, rows={"s": [{**plain, "row": {"x": 1, "X": 2}}]})

    assert dict(open_store(tmp_path).rows("s")[0]) == {"x": 1, "X_1": 2}


def test_columns_added_and_dropped_between_runs_are_all_there(tmp_path: Path) -> None:
    builder = StoreBuilder(tmp_path)
    builder.batch("s", 0, rows={"s": [row(1, 1, car=7, lane=2)]})
    builder.batch("s", 0, run="aaaaaaaa", rows={"s": [row(2, 2, speed=1.5, car=8)]})

    rows = open_store(tmp_path).rows("s", where="car > 6", order_by="car")

    assert [dict(each) for each in rows] == [
        {"car": 7, "lane": 2, "speed": None},
        {"car": 8, "lane": None, "speed": 1.5},
    ]


def test_a_column_whose_type_changed_is_brought_to_one_type(tmp_path: Path) -> None:
    builder = StoreBuilder(tmp_path)
    nested = {"k": 1}
    builder.batch("s", 0, rows={"s": [row(1, 1, n=7, at="x", w={"lo": 1}, v=1)]})
    builder.batch(
        "s", 1, rows={"s": [row(2, 2, n=7.5, at=at("08:00:00"), w={"hi": "b"}, v=nested)]}
    )

    rows = open_store(tmp_path).rows("s")

    assert [dict(each) for each in rows] == [
        {"n": 7.0, "at": "x", "w": {"lo": 1, "hi": None}, "v": "1"},
        {"n": 7.5, "at": "2026-01-01 08:00:00+00", "w": {"lo": None, "hi": "b"}, "v": "{'k': 1}"},
    ]


def test_the_newest_version_of_a_row_counts_even_if_its_columns_changed(tmp_path: Path) -> None:
    builder = StoreBuilder(tmp_path)
    builder.batch("s", 0, run="ffffffff", rows={"s": [row(1, 1, n=1)]})
    builder.batch("s", 1, run="ffffffff", rows={"s": [row(1, 1, n="two")]})
    builder.batch("s", 0, run="00000000", rows={"s": [row(1, 1, n=3)]})
    provenance = open_store(tmp_path)

    assert [each["n"] for each in provenance.rows("s")] == ["3"]
    assert [each["n"] for each in provenance.rows("s", where="n <> '3'")] == ["two"]
    assert provenance.row("s", RowId("s", 1, 1))["n"] == "3"


def test_a_condition_on_a_struct_inside_the_row_is_kept(tmp_path: Path) -> None:
    builder = StoreBuilder(tmp_path)
    windows = [{"start": at(f"08:0{i}:00"), "end": at(f"08:1{i}:00")} for i in range(6)]
    builder.batch("s", 0, rows={"s": [row(i, 0, window=w, n=i) for i, w in enumerate(windows)]})

    rows = open_store(tmp_path).rows(
        "s",
        where="\"window\".start > TIMESTAMPTZ '2026-01-01 08:03:00+00'",
        order_by='"window".start DESC',
        limit=2,
    )

    assert [each["n"] for each in rows] == [5, 4]
    assert rows.total == 2


def test_older_timestamps_of_spark_are_points_in_time(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    builder = StoreBuilder(tmp_path)
    [path] = builder.batch("s", 0, rows={"s": [row(1, 1, time=at("08:00:00"), at=at("09:00:00"))]})
    table = pq.read_table(tmp_path / path)
    pq.write_table(table, tmp_path / path, use_deprecated_int96_timestamps=True)

    [found] = open_store(tmp_path).rows("s")

    assert (found.time, found["at"]) == (at("08:00:00"), at("09:00:00"))


DEEP = pa.struct(
    [
        ("price", pa.decimal128(38, 18)),
        ("raw", pa.binary()),
        ("tags", pa.list_(pa.string())),
        ("sizes", pa.map_(pa.string(), pa.int64())),
        ("codes", pa.map_(pa.int32(), pa.list_(pa.struct([("d", pa.date32())])))),
        ("local", pa.timestamp("us")),
        ("day", pa.date32()),
        ("real", pa.float64()),
        ("none", pa.string()),
    ]
)
DEEP_VALUES: dict[str, Any] = {
    "price": Decimal("1234567890.000000000000000001"),
    "raw": b"\x00\xff",
    "tags": ["a", None],
    "sizes": {"m": 2},
    "codes": {5: [{"d": dt.date(2026, 1, 1)}]},
    "local": dt.datetime.fromisoformat("2026-01-01T08:00:00"),
    "day": dt.date(2026, 1, 1),
    "real": float("inf"),
    "none": None,
}


@pytest.fixture
def deep(tmp_path: Path) -> Provenance:
    builder = StoreBuilder(tmp_path)
    values = {**DEEP_VALUES, "codes": list(DEEP_VALUES["codes"].items()), "sizes": [("m", 2)]}
    builder.batch("s", 0, rows={"s": [{**row(1, 1), "row": values}]}, types={"s": DEEP})
    return open_store(tmp_path)


def test_values_of_every_type_come_back_as_they_were(deep: Provenance) -> None:
    assert dict(deep.rows("s")[0]) == DEEP_VALUES


def test_values_of_every_type_are_plain_data_on_demand(deep: Provenance) -> None:
    assert deep.rows("s").to_dicts()[0]["row"] == {
        "price": "1234567890.000000000000000001",
        "raw": "00ff",
        "tags": ["a", None],
        "sizes": {"m": 2},
        "codes": {"5": [{"d": "2026-01-01"}]},
        "local": "2026-01-01T08:00:00",
        "day": "2026-01-01",
        "real": "Infinity",
        "none": None,
    }


def test_a_date_beyond_python_is_text(tmp_path: Path) -> None:
    builder = StoreBuilder(tmp_path)
    dtype = pa.struct([("at", pa.timestamp("us", "UTC"))])
    far = 300_000_000_000_000_000  # the year 11476
    builder.batch("s", 0, rows={"s": [{**row(1, 1), "row": {"at": far}}]}, types={"s": dtype})

    assert open_store(tmp_path).rows("s")[0]["at"].startswith("11476-")


def test_a_table_shows_at_most_twenty_rows_and_counts_the_rest(tmp_path: Path) -> None:
    builder = StoreBuilder(tmp_path)
    builder.batch("s", 0, rows={"s": [row(i, 0, n=i) for i in range(25)]})

    lines = repr(open_store(tmp_path).rows("s", limit=22)).splitlines()

    assert (len(lines), lines[-1]) == (22, "and 5 more")


def test_a_table_is_aligned_and_escapes_control_characters(tmp_path: Path) -> None:
    builder = StoreBuilder(tmp_path)
    builder.batch(
        "s", 0, rows={"s": [row(1, 0, t="\x1b[31mred\n", u="车"), row(2, 0, t="", u="b")]}
    )

    assert repr(open_store(tmp_path).rows("s")) == (
        "row                               t              u\n"
        "00000000000000010000000000000000  \\x1b[31mred\\n  车\n"
        "00000000000000020000000000000000                 b"
    )


def test_rows_as_pandas_have_identity_and_content(road: Provenance) -> None:
    frame = road.rows("reports", where="car = 9").to_pandas()

    assert frame.to_dict("records") == [
        {
            "stream": "reports",
            "id": "00000000000000010000000000000004",
            "segment": "file:///in/part-1.parquet",
            "position": 4,
            "time": at("08:00:40"),
            "car": 9,
            "speed": 0,
            "pos": 5,
        }
    ]


def test_an_open_store_sees_new_batches_and_keeps_old_answers(tmp_path: Path) -> None:
    builder = StoreBuilder(tmp_path)
    builder.batch("s", 0, rows={"s": [row(1, 1, n=1)]})
    provenance = open_store(tmp_path)
    before = provenance.rows("s")
    builder.batch("s", 1, rows={"s": [row(2, 2, n=2)]})

    assert [each["n"] for each in provenance.rows("s")] == [1, 2]
    assert [each["n"] for each in before] == [1]


def test_a_file_that_vanished_is_an_error_and_not_a_shorter_answer(tmp_path: Path) -> None:
    builder = StoreBuilder(tmp_path)
    builder.batch("s", 0, rows={"s": [row(1, 1, n=1)]})
    [path] = builder.batch("s", 1, rows={"s": [row(2, 2, n=2)]})
    provenance = open_store(tmp_path)
    assert len(provenance.rows("s")) == 2
    (tmp_path / path).unlink()

    with pytest.raises(StoreError, match=f"a file of the store is gone: `{tmp_path}/{path}`"):
        provenance.rows("s")

    builder.batch("s", 1, rows={"s": [row(3, 3, n=3)]})
    assert [each["n"] for each in provenance.rows("s")] == [1, 3]
