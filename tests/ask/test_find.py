"""A row is found by whatever the user has in hand, or it is said why not."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.sql import Row as SparkRow

from clew.ask.find import parse_values
from clew.ask.provenance import open_store
from clew.exceptions import QueryError, RowNotFoundError
from clew.model import RowId
from store.build import StoreBuilder, at, row
from store.road import FILE_0

if TYPE_CHECKING:
    from pathlib import Path

    from clew.ask.provenance import Provenance

NAIVE = dt.datetime.fromisoformat("2026-01-01T08:00:00")
CAR_8 = RowId("stopped", 80, 1)


@pytest.mark.parametrize(
    "given",
    [
        CAR_8,
        CAR_8.text,
        CAR_8.text.upper(),
        {"car": 8},
        {"CAR": 8},
        {"car": 8, "n": 2},
        {"car": "8"},
        {"car": 8.0},
        {"clew_id": CAR_8.text, "car": 7},
        SparkRow(car=8, n=2),
        "car=8",
        "car=8,n=2",
    ],
    ids=repr,
)
def test_the_same_row_is_found_by_every_form(road: Provenance, given: Any) -> None:
    assert road.row("stopped", given).id == CAR_8


def test_a_row_of_an_answer_stands_for_itself(road: Provenance) -> None:
    [found] = road.rows("stopped", where="car = 8")

    assert road.row("stopped", found).id == CAR_8


@pytest.mark.parametrize("segment", [FILE_0, "part-0.parquet", "in/part-0.parquet"])
def test_a_source_row_is_found_by_segment_and_position(road: Provenance, segment: str) -> None:
    assert road.row("reports", f"{segment}:3").id == RowId("reports", 0, 3)


def test_a_segment_that_is_ambiguous_lists_its_full_names(tmp_path: Path) -> None:
    builder = StoreBuilder(tmp_path)
    segments = ["a/part-0", "b/part-0", "part-0x"]
    rows = [row(i, 0, segment=each, n=i) for i, each in enumerate(segments)]
    builder.batch("s", 0, rows={"r": rows, "s": [row(1, 1, n=1)]})
    provenance = open_store(tmp_path)

    with pytest.raises(QueryError, match="stands for 2 segments of `r`: `a/part-0`, `b/part-0`"):
        provenance.row("r", "part-0:0")
    assert provenance.row("r", "b/part-0:0")["n"] == 1


def test_a_segment_with_its_exact_name_wins_over_one_that_ends_like_it(tmp_path: Path) -> None:
    builder = StoreBuilder(tmp_path)
    rows = [row(1, 0, segment="part-0", n=1), row(2, 0, segment="a/part-0", n=2)]
    builder.batch("s", 0, rows={"r": rows})

    assert open_store(tmp_path).row("r", "part-0:0")["n"] == 1


def test_an_unknown_segment_says_that_only_contributing_rows_are_kept(road: Provenance) -> None:
    with pytest.raises(RowNotFoundError, match="only rows that contributed to a result are kept"):
        road.forward("reports", "part-9.parquet:3")


def test_values_that_match_nothing_name_the_batches(road: Provenance) -> None:
    with pytest.raises(RowNotFoundError) as error:
        road.backward("stopped", {"car": 8, "n": 77})

    assert str(error.value) == (
        "stream `stopped` has no row with car=8, n=77: "
        "the store holds batches 0 to 1 of `stopped` (run 3f2a90bc)."
    )


def test_values_that_match_several_rows_list_their_ids(road: Provenance) -> None:
    with pytest.raises(QueryError) as error:
        road.backward("stopped", {"n": 2})

    assert str(error.value) == (
        "2 rows of `stopped` match n=2: 00000000000000460000000000000001, "
        "00000000000000500000000000000001.\n\nGive more columns, or one of the ids."
    )


def test_many_matches_are_counted_and_the_first_are_shown(tmp_path: Path) -> None:
    builder = StoreBuilder(tmp_path)
    builder.batch("s", 0, rows={"s": [row(i, 0, n=1) for i in range(9)]})

    with pytest.raises(QueryError, match="9 rows of `s` match n=1: .* and 4 more"):
        open_store(tmp_path).backward("s", {"n": 1})


def test_an_older_version_of_a_row_is_found_by_its_values(tmp_path: Path) -> None:
    builder = StoreBuilder(tmp_path)
    for number in range(3):
        builder.batch("s", number, rows={"s": [row(1, 1, n=number)]})

    assert open_store(tmp_path).row("s", {"n": 1}) == {"n": 2}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"lane": 1}, "stream `stopped` has no column `lane`.\n\nThe columns are: `car`, `n`."),
        ({}, "a row of `stopped` cannot be found by no column at all"),
        ([], "no row was given"),
        ("what", "it is not clear which row 'what' stands for"),
        (7, "it is not clear which row 7 stands for"),
        ([7], "it is not clear which row 7 stands for"),
        (RowId("reports", 1, 1), "belongs to stream `reports`, not to `stopped`"),
        ({"car": "seven"}, "column `car` is BIGINT and cannot be seven (str)"),
        ({"car": 7.5}, "column `car` is BIGINT and cannot be 7.5 (float)"),
        ({"car": [1]}, "column `car` is BIGINT and cannot be [1] (list)"),
    ],
    ids=repr,
)
def test_what_cannot_be_a_row_is_refused(road: Provenance, given: Any, message: str) -> None:
    with pytest.raises(QueryError) as error:
        road.backward("stopped", given)

    assert message in str(error.value)


WIDE = pa.struct(
    [
        ("at", pa.timestamp("us", "UTC")),
        ("local", pa.timestamp("us")),
        ("price", pa.decimal128(10, 2)),
        ("raw", pa.binary()),
        ("window", pa.struct([("start", pa.timestamp("us", "UTC")), ("end", pa.int32())])),
        ("sizes", pa.map_(pa.string(), pa.int64())),
        ("tags", pa.list_(pa.string())),
        ("real", pa.float32()),
        ("none", pa.string()),
        ("day", pa.date32()),
        ("flag", pa.bool_()),
    ]
)
WIDE_VALUES = {
    "at": at("08:00:00"),
    "local": NAIVE,
    "price": Decimal("1.50"),
    "raw": b"\x01",
    "window": {"start": at("08:00:00"), "end": 3},
    "sizes": [("m", 2)],
    "tags": ["a", None],
    "real": 0.1,
    "none": None,
    "day": dt.date(2026, 1, 1),
    "flag": True,
}


@pytest.fixture
def wide(tmp_path: Path) -> Provenance:
    builder = StoreBuilder(tmp_path)
    other = dict.fromkeys(WIDE_VALUES)
    rows = [{**row(1, 1), "row": WIDE_VALUES}, {**row(2, 2), "row": {**other, "none": "x"}}]
    builder.batch("s", 0, rows={"s": rows}, types={"s": WIDE})
    return open_store(tmp_path)


@pytest.mark.parametrize(
    "given",
    [
        {"at": at("08:00:00")},
        {"at": NAIVE},
        {"at": at("08:00:00").astimezone(dt.timezone(dt.timedelta(hours=5)))},
        {"at": "2026-01-01T08:00:00Z"},
        {"at": "2026-01-01 08:00:00"},
        {"local": NAIVE},
        {"local": at("08:00:00")},
        {"price": Decimal("1.5")},
        {"price": "1.50"},
        {"price": 1.5},
        {"raw": b"\x01"},
        {"raw": bytearray(b"\x01")},
        {"window": {"start": NAIVE, "end": 3}},
        {"window": SparkRow(start=at("08:00:00"), end=3)},
        {"sizes": {"m": 2}},
        {"tags": ["a", None]},
        {"real": 0.1},
        {"none": None},
        {"day": dt.date(2026, 1, 1)},
        {"day": "2026-01-01"},
        {"flag": True},
        {"flag": "true"},
        dict(WIDE_VALUES),
    ],
    ids=repr,
)
def test_values_of_every_type_are_compared_as_the_column_has_them(
    wide: Provenance, given: dict[str, Any]
) -> None:
    assert wide.row("s", given).id == RowId("s", 1, 1)


def test_a_spark_row_with_a_window_is_found(wide: Provenance) -> None:
    given = SparkRow(window=SparkRow(start=NAIVE, end=3), none=None)

    assert wide.row("s", given).id == RowId("s", 1, 1)


@pytest.mark.parametrize(
    "given", [{"at": at("09:00:00")}, {"price": Decimal("1.51")}, {"real": 0.2}], ids=repr
)
def test_other_values_are_not_found(wide: Provenance, given: dict[str, Any]) -> None:
    with pytest.raises(RowNotFoundError):
        wide.row("s", given)


def test_a_date_stands_for_its_midnight(tmp_path: Path) -> None:
    builder = StoreBuilder(tmp_path)
    builder.batch("s", 0, rows={"s": [row(1, 1, at=at("00:00:00"))]})

    assert open_store(tmp_path).row("s", {"at": dt.date(2026, 1, 1)}).id == RowId("s", 1, 1)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("car=7", {"car": "7"}),
        ("car=7,note=a,b=c", {"car": "7", "note": "a,b=c"}),
        ("note=null", {"note": None}),
        ("note='null'", {"note": "null"}),
        ('note="a b"', {"note": "a b"}),
        ("note=", {"note": ""}),
        ("at=2026-01-01T08:00:00", {"at": "2026-01-01T08:00:00"}),
        ("day=1/part-0.parquet:3", None),
        ("7", None),
    ],
)
def test_text_is_read_as_values_if_it_begins_with_a_column(
    text: str, values: dict[str, str | None] | None
) -> None:
    assert parse_values(text, ["car", "note", "at"]) == values


def test_a_segment_with_an_equals_sign_is_not_taken_for_a_column(tmp_path: Path) -> None:
    builder = StoreBuilder(tmp_path)
    builder.batch("s", 0, rows={"r": [row(1, 3, segment="in/day=1/part-0", n=5)]})

    assert open_store(tmp_path).row("r", "day=1/part-0:3") == {"n": 5}


def test_positions_that_are_hashes_are_not_shown_as_positions(tmp_path: Path) -> None:
    builder = StoreBuilder(tmp_path)
    identity = {"kind": "key", "segment": "key", "position": "hash of the key"}
    builder.source("r", identity=identity)
    builder.batch("s", 0, rows={"r": [row(1, -3, segment="k1", n=5)]})

    [found] = open_store(tmp_path).rows("r")

    assert (found.segment, found.position) == ("k1", None)
    assert found.label == "0000000000000001fffffffffffffffd"
