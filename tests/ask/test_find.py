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


def test_rows_that_match_alike_are_listed_to_choose_from(road: Provenance) -> None:
    with pytest.raises(QueryError) as error:
        road.backward("stopped", {"n": 2})

    assert str(error.value) == (
        "2 rows of `stopped` match n=2, so it cannot be told which one is meant:\n\n"
        "row                               car  n\n"
        "00000000000000460000000000000001    7  2\n"
        "00000000000000500000000000000001    8  2\n\n"
        "Give more columns, e.g. `car=7`, or one of the ids."
    )


def test_many_matches_are_counted_and_the_first_are_shown(tmp_path: Path) -> None:
    builder = StoreBuilder(tmp_path)
    builder.batch("s", 0, rows={"s": [row(i, 0, n=1) for i in range(9)]})

    with pytest.raises(QueryError, match="9 rows of `s` match n=1") as error:
        open_store(tmp_path).backward("s", {"n": 1})
    assert str(error.value).splitlines()[-4:] == [
        "00000000000000040000000000000000  1",
        "and 4 more",
        "",
        "Give more columns or one of the ids.",
    ]


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


WINDOWED = pa.struct(
    [
        ("window", pa.struct([(n, pa.timestamp("us", "UTC")) for n in ("start", "end")])),
        ("local", pa.timestamp("us")),
        ("car", pa.int32()),
        ("place", pa.struct([("road", pa.int32()), ("at", pa.struct([("x", pa.string())]))])),
    ]
)


@pytest.fixture
def windowed(tmp_path: Path) -> Provenance:
    """A store with the windows of two cars that begin at 08:03, 08:03:30 and so the day after."""
    builder = StoreBuilder(tmp_path)
    half = dt.timedelta(seconds=30)
    begins = [at("08:03:00"), at("08:03:00") + half, at("08:03:00") + dt.timedelta(days=1)]
    rows = [
        {
            **row(car, i),
            "row": {
                "window": {"start": begin, "end": begin + 4 * half},
                "local": begin.replace(tzinfo=None),
                "car": car,
                "place": {"road": i, "at": {"x": f"x{i}"}},
            },
        }
        for car in (7, 8)
        for i, begin in enumerate(begins)
    ]
    builder.batch("s", 0, rows={"s": rows}, types={"s": WINDOWED})
    return open_store(tmp_path)


@pytest.mark.parametrize(
    "given",
    [
        "car=7,window.start=08:03:30",
        "window.start=8:03:30,car=7",
        "car=7,window.start=2026-01-01T08:03:30Z",
        {"CAR": 7, "WINDOW.start": "08:03:30"},
        "car=7,local=08:03:30",
        "car=7,window.end='08:05:30.000000'",
        "car=7,place.at.x=x1",
        {"car": 7, "window.start": "08:03:30"},
        {"car": 7, "window.start": dt.time(8, 3, 30)},
        {"car": 7, "window.start": at("08:03:30")},
        {"car": 7, "place.road": 1},
    ],
    ids=repr,
)
def test_a_row_is_found_by_fields_and_by_the_clock(windowed: Provenance, given: Any) -> None:
    assert windowed.row("s", given).id == RowId("s", 7, 1)


def test_a_clock_names_every_day_so_the_days_are_listed(windowed: Provenance) -> None:
    with pytest.raises(QueryError) as error:
        windowed.backward("s", "car=7,window.start=08:03")

    said = str(error.value).splitlines()
    assert said[0] == (
        "2 rows of `s` match car=7, window.start=08:03, so it cannot be told which one is meant:"
    )
    assert [line.split()[0] for line in said[3:5]] == [f"{7:016x}{i:016x}" for i in (0, 2)]
    assert "2026-01-02T08:03:00Z" in said[4]
    assert said[-1] == (
        "Give more columns, e.g. `window.start=2026-01-01T08:03:00Z`, or one of the ids."
    )


@pytest.mark.parametrize("clock", ["08:04", "08:03:00.5", "20:03"])
def test_a_row_at_another_time_of_day_is_not_found(windowed: Provenance, clock: str) -> None:
    with pytest.raises(RowNotFoundError, match=f"window.start={clock}"):
        windowed.row("s", {"car": 7, "window.start": clock})


@pytest.mark.parametrize("clock", ["25:00", "08:60", "8"])
def test_what_is_no_clock_is_refused(windowed: Provenance, clock: str) -> None:
    with pytest.raises(QueryError, match="column `window.start` is TIMESTAMP WITH TIME ZONE"):
        windowed.row("s", {"window.start": clock})


def test_a_field_that_is_not_there_is_refused(windowed: Provenance) -> None:
    with pytest.raises(QueryError, match=r"stream `s` has no column `window.begin`"):
        windowed.row("s", {"window.begin": "08:03"})


def test_times_before_1970_have_a_clock_too(tmp_path: Path) -> None:
    builder = StoreBuilder(tmp_path)
    old = dt.datetime(1950, 5, 5, 23, 59, 59, tzinfo=dt.timezone.utc)
    builder.batch("s", 0, rows={"s": [row(1, 1, at=old)]})

    assert open_store(tmp_path).row("s", "at=23:59:59").id == RowId("s", 1, 1)


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
