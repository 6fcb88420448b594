"""Blackouts and anomalies: what is planted is found, by Spark and by the plain model alike."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from clew.workloads import write_files
from domains import smart_grid

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from workloads.conftest import Finished

    Rows = list[dict[str, Any]]
    InOrder = Callable[[Sequence[Mapping[str, Any]]], Rows]
    Stream = Callable[[Path, str], DataFrame]
    Finish = Callable[[DataFrame], Finished]

SEED = 11
OUT_OF_ORDER = 3_600
MONDAY = datetime(2024, 1, 1, tzinfo=timezone.utc)


def day_of(meter: int, consumption: int, *, day: int = 0) -> Rows:
    """The 24 readings of a day, all the same."""
    first = MONDAY + timedelta(days=day)
    return [
        {"ts": first + timedelta(hours=hour), "meter": meter, "consumption": consumption}
        for hour in range(24)
    ]


def table_of(rows: Rows) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=smart_grid.readings().schema)


@pytest.fixture(scope="module")
def grid() -> smart_grid.SmartGrid:
    print(f"seed {SEED}")
    return smart_grid.generate(
        meters=30,
        days=5,
        blackouts=2,
        dark=9,
        compensations=3,
        decoys=2,
        seed=SEED,
        out_of_order=OUT_OF_ORDER,
    )


@pytest.fixture(scope="module")
def folder(grid: smart_grid.SmartGrid, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("readings")
    closing = smart_grid.closing_reading(grid.table)
    write_files(grid.table, folder, files=3, closing=closing)
    return folder


# The plain model.


def test_eight_dark_meters_are_a_blackout_that_traces_to_192_readings() -> None:
    dark = [row for meter in range(8) for row in day_of(meter, 0)]
    table = table_of([*dark, *day_of(8, 5)])

    [blackout] = smart_grid.expected_blackouts(table)

    assert blackout.values == {
        "window": {"start": MONDAY, "end": MONDAY + timedelta(days=1)},
        "dark": 8,
    }
    assert blackout.rows == {"readings": set(range(192))}


def test_seven_dark_meters_are_no_blackout() -> None:
    table = table_of([row for meter in range(7) for row in day_of(meter, 0)])

    assert smart_grid.expected_blackouts(table) == []


def test_an_anomaly_traces_to_its_day_and_the_midnight_after_it() -> None:
    table = table_of([*day_of(1, 1), *day_of(1, 40_024, day=1)[:2]])

    [anomaly] = smart_grid.expected_anomalies(table)

    assert anomaly.values == {
        "day": MONDAY,
        "meter": 1,
        "total": 24,
        "reading": 40_024,
        "difference": 40_000,
    }
    assert anomaly.rows == {"readings": set(range(25))}


def test_a_difference_just_at_the_threshold_is_no_anomaly() -> None:
    table = table_of([*day_of(1, 1), *day_of(1, 30_024, day=1)[:1]])

    assert smart_grid.expected_anomalies(table) == []
    assert len(smart_grid.expected_anomalies(table, threshold=29_999)) == 1


def test_without_any_one_of_its_rows_an_anomaly_changes(grid: smart_grid.SmartGrid) -> None:
    anomaly = smart_grid.expected_anomalies(grid.table)[0]

    for row in anomaly.rows["readings"]:
        others = [i for i in range(grid.table.num_rows) if i != row]
        left = smart_grid.expected_anomalies(grid.table.take(others))
        assert anomaly.values not in [other.values for other in left]


# The generator.


def test_the_planted_blackouts_are_found_and_days_with_seven_dark_meters_are_not(
    grid: smart_grid.SmartGrid,
) -> None:
    found = smart_grid.expected_blackouts(grid.table)

    assert [hit.values["window"]["start"] for hit in found] == sorted(
        blackout.day for blackout in grid.blackouts
    )
    assert [(hit.values["dark"], hit.size) for hit in found] == [(9, 9 * 24)] * 2
    with_dim = smart_grid.expected_blackouts(grid.table, more_than=6)
    dim = [hit for hit in with_dim if hit.values["dark"] == 7]
    assert [hit.values["window"]["start"] for hit in dim] == sorted(day.day for day in grid.dim)
    assert len(grid.dim) == 2


def test_a_blackout_traces_to_the_dark_meters_only(grid: smart_grid.SmartGrid) -> None:
    meters = grid.table["meter"].to_pylist()
    planted = {blackout.day: set(blackout.meters) for blackout in grid.blackouts}

    traced = {
        hit.values["window"]["start"]: {meters[row] for row in hit.rows["readings"]}
        for hit in smart_grid.expected_blackouts(grid.table)
    }

    assert traced == planted
    for dark in traced.values():
        assert dark.isdisjoint(grid.flickering)


def test_flickering_meters_read_0_for_23_hours_of_each_outage(grid: smart_grid.SmartGrid) -> None:
    rows = grid.table.to_pylist()
    for outage in grid.blackouts + grid.dim:
        for meter in grid.flickering:
            used = sorted(
                row["consumption"]
                for row in rows
                if row["meter"] == meter and timedelta(0) <= row["ts"] - outage.day < timedelta(1)
            )
            assert used == [0] * 23 + [1]


def test_compensations_and_their_echoes_are_the_only_anomalies(grid: smart_grid.SmartGrid) -> None:
    planted = sorted((made.meter, made.day) for made in grid.compensations + grid.echoes)

    found = smart_grid.expected_anomalies(grid.table)

    assert sorted((hit.values["meter"], hit.values["day"]) for hit in found) == planted
    assert {hit.size for hit in found} == {25}
    assert len(grid.compensations) == 3


def test_borderline_meters_lie_at_the_threshold_on_two_days(grid: smart_grid.SmartGrid) -> None:
    meters = {decoy.meter for decoy in grid.borderline}

    below = smart_grid.expected_anomalies(grid.table, threshold=29_999)

    found = sorted(
        (hit.values["meter"], hit.values["day"], hit.values["difference"])
        for hit in below
        if hit.values["meter"] in meters
    )
    assert found == sorted(
        (decoy.meter, decoy.day + timedelta(days=later), 30_000)
        for decoy in grid.borderline
        for later in (0, 1)
    )


def test_heaters_take_a_lot_at_every_midnight_and_are_no_anomaly(
    grid: smart_grid.SmartGrid,
) -> None:
    rows = grid.table.to_pylist()

    midnights = [
        row["consumption"] for row in rows if row["meter"] in grid.heaters and row["ts"].hour == 0
    ]

    assert midnights == [25_000] * 5 * 2
    found = {hit.values["meter"] for hit in smart_grid.expected_anomalies(grid.table)}
    assert found.isdisjoint(grid.heaters)


def test_the_same_seed_gives_the_same_table_and_another_seed_does_not() -> None:
    table = smart_grid.readings(seed=1, out_of_order=60)

    assert smart_grid.readings(seed=1, out_of_order=60).equals(table)
    assert not smart_grid.readings(seed=2, out_of_order=60).equals(table)


def test_every_meter_reads_once_an_hour() -> None:
    table = smart_grid.readings(meters=30, days=3, seed=3)

    rows = sorted((row["ts"], row["meter"]) for row in table.to_pylist())

    assert rows == [
        (MONDAY + timedelta(hours=hour), meter) for hour in range(72) for meter in range(30)
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"meters": 11}, r"need 12 meters; got `meters=11`"),
        ({"days": 2}, r"need 3 days; got `days=2`"),
        ({"days": 3, "blackouts": 3}, r"need 4 days; got `days=3`"),
    ],
)
def test_a_plan_that_does_not_fit_is_refused(options: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        smart_grid.generate(**options)


# Spark.


def test_blackouts_in_batch_and_stream_are_as_expected(
    grid: smart_grid.SmartGrid,
    folder: Path,
    spark: SparkSession,
    stream: Stream,
    finish: Finish,
    in_order: InOrder,
) -> None:
    expected = in_order([hit.values for hit in smart_grid.expected_blackouts(grid.table)])

    batch = smart_grid.blackouts(spark.read.parquet(str(folder)))
    streamed = finish(smart_grid.blackouts(stream(folder, smart_grid.SCHEMA)))

    assert in_order(batch.toArrow().to_pylist()) == expected
    assert in_order(streamed.rows) == expected


def test_anomalies_in_batch_and_stream_are_as_expected(
    grid: smart_grid.SmartGrid,
    folder: Path,
    spark: SparkSession,
    stream: Stream,
    finish: Finish,
    in_order: InOrder,
) -> None:
    expected = in_order([hit.values for hit in smart_grid.expected_anomalies(grid.table)])

    batch = smart_grid.anomalies(spark.read.parquet(str(folder)))
    streamed = finish(smart_grid.anomalies(stream(folder, smart_grid.SCHEMA)))

    assert in_order(batch.toArrow().to_pylist()) == expected
    assert in_order(streamed.rows) == expected
    assert streamed.kept_by_joins == 0


def test_the_traced_rows_alone_make_the_anomaly_again(
    grid: smart_grid.SmartGrid, spark: SparkSession
) -> None:
    anomaly = smart_grid.expected_anomalies(grid.table)[0]
    traced = grid.table.take(sorted(anomaly.rows["readings"]))

    again = smart_grid.anomalies(spark.createDataFrame(traced))

    assert again.toArrow().to_pylist() == [anomaly.values]
