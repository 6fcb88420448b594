"""Bicycles ahead and crossings: what is planted is found, by Spark and by the plain model alike."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from itertools import product
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import clew
from clew.testing import all_traces, collect_traces, run_stream, without_zone
from clew.workloads import write_files
from domains import object_annotation

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from clew.testing import Traced
    from clew.workloads import Expected
    from workloads.conftest import Finished

    Rows = list[dict[str, Any]]
    InOrder = Callable[[Sequence[Mapping[str, Any]]], Rows]
    Stream = Callable[[Path, str], DataFrame]
    Finish = Callable[[DataFrame], Finished]

SEED = 12
OUT_OF_ORDER = 2
EIGHT = datetime(2024, 1, 1, 8, tzinfo=timezone.utc)


def after(seconds: float) -> datetime:
    return EIGHT + timedelta(seconds=seconds)


def frame(seconds: float, car: int = 1, **seen: list[tuple[str, float, float, str]]) -> Rows:
    """A frame, with what its sensors see as kind, x, y and name."""
    fields = ("kind", "x", "y", "object")
    lists = {
        sensor: [dict(zip(fields, each, strict=True)) for each in seen.get(sensor, [])]
        for sensor in ("lidar", "left", "right")
    }
    return [{"ts": after(seconds), "car": car, **lists}]


def table_of(rows: Rows) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=object_annotation.frames(cars=1).schema)


def cycling(frames: int, x: float = 10, y: float = 0, kind: str = "bicycle") -> pa.Table:
    rows = [frame(4 + i / 10, lidar=[(kind, x, y, "b")]) for i in range(frames)]
    return table_of([row for each in rows for row in each])


@pytest.fixture(scope="module")
def drives() -> object_annotation.ObjectAnnotation:
    print(f"seed {SEED}")
    return object_annotation.generate(
        cars=3,
        seconds=20,
        objects=10,
        bicycles=5,
        crossings=5,
        decoys=2,
        seed=SEED,
        out_of_order=OUT_OF_ORDER,
    )


@pytest.fixture(scope="module")
def folder(
    drives: object_annotation.ObjectAnnotation, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    folder = tmp_path_factory.mktemp("frames")
    closing = object_annotation.closing_frame(drives.table)
    write_files(drives.table, folder, files=3, closing=closing)
    return folder


# The plain model.


def test_twelve_frames_with_a_bicycle_in_front_are_found_and_traced_to() -> None:
    rows = [*cycling(12).to_pylist(), *frame(5.2, lidar=[("vehicle", 10, 0, "v")])]

    hits = object_annotation.expected_bicycles_ahead(table_of(rows))

    assert [hit.values for hit in hits] == [
        {
            "window": {"start": after(start), "end": after(start + 6)},
            "car": 1,
            "object": "b",
            "frames": 12,
        }
        for start in (0, 2, 4)
    ]
    assert [hit.rows for hit in hits] == [{"frames": set(range(12))}] * 3


@pytest.mark.parametrize(
    "table",
    [
        cycling(11),
        cycling(30, x=0),
        cycling(30, y=2),
        cycling(30, y=-2),
        cycling(30, kind="pedestrian"),
    ],
    ids=["eleven frames", "not ahead", "to the left", "to the right", "no bicycle"],
)
def test_what_is_not_a_bicycle_in_front_for_twelve_frames_is_not_found(table: pa.Table) -> None:
    assert object_annotation.expected_bicycles_ahead(table) == []


def test_a_crossing_traces_to_the_two_frames_of_its_sightings() -> None:
    table = table_of(
        [
            *frame(1, left=[("pedestrian", 5, 4, "p"), ("bicycle", 5, 4, "b")]),
            *frame(1.5),
            *frame(3, right=[("pedestrian", 5, -4, "p"), ("bicycle", 5, -4, "b")]),
            *frame(3.1, right=[("pedestrian", 5, -4, "p")]),  # more than two seconds later
            *frame(2, 2, right=[("pedestrian", 5, -4, "p")]),  # seen by another car
        ]
    )

    [crossing] = object_annotation.expected_crossings(table)

    assert crossing.values == {
        "car": 1,
        "object": "p",
        "left_time": after(1),
        "right_time": after(3),
    }
    assert crossing.rows == {"frames": {0, 2}}


def test_whichever_camera_comes_first_each_pair_of_sightings_is_a_result() -> None:
    seen = [("pedestrian", 5.0, 4.0, "p")]
    table = table_of(
        [*frame(1, right=seen), *frame(2, left=seen, right=seen), *frame(3, left=seen)]
    )

    hits = object_annotation.expected_crossings(table)

    assert [
        (hit.values["left_time"], hit.values["right_time"], set(hit.rows["frames"])) for hit in hits
    ] == [
        (after(2), after(1), {0, 1}),
        (after(2), after(2), {1}),
        (after(3), after(1), {0, 2}),
        (after(3), after(2), {1, 2}),
    ]


def test_without_any_one_of_its_rows_a_result_changes(
    drives: object_annotation.ObjectAnnotation,
) -> None:
    for expected in (
        object_annotation.expected_bicycles_ahead,
        object_annotation.expected_crossings,
    ):
        hit = expected(drives.table)[0]
        for row in hit.rows["frames"]:
            others = [i for i in range(drives.table.num_rows) if i != row]
            left = expected(drives.table.take(others))
            assert hit.values not in [other.values for other in left]


# The generator.


def test_rides_are_found_in_each_window_with_twelve_of_their_frames(
    drives: object_annotation.ObjectAnnotation,
) -> None:
    expected = []
    for ride in drives.rides:
        times = [ride.first + timedelta(milliseconds=100 * i) for i in range(ride.frames)]
        for start in (after(2 * i) for i in range(-2, 10)):
            count = sum(start <= time < start + timedelta(seconds=6) for time in times)
            if count > 11:
                expected.append((start, ride.car, ride.object, count))

    hits = [hit.values for hit in object_annotation.expected_bicycles_ahead(drives.table)]

    found = [(hit["window"]["start"], hit["car"], hit["object"], hit["frames"]) for hit in hits]
    assert sorted(found) == sorted(expected)
    assert len({bicycle for _, _, bicycle, _ in expected}) == len(drives.rides) == 5


def test_crossings_are_found_with_each_pair_of_their_sightings(
    drives: object_annotation.ObjectAnnotation,
) -> None:
    expected = [
        (crossing.car, crossing.object, left, right)
        for crossing in drives.crossings
        for left, right in product(crossing.left, crossing.right)
    ]

    hits = object_annotation.expected_crossings(drives.table)

    assert [tuple(hit.values.values()) for hit in hits] == sorted(expected)
    assert {hit.size for hit in hits} == {2}
    assert len(drives.crossings) == 5


def test_bicycles_that_are_brief_beside_or_behind_are_there(
    drives: object_annotation.ObjectAnnotation,
) -> None:
    seen: dict[str, list[tuple[float, float]]] = {}
    for row in drives.table.to_pylist():
        for each in row["lidar"]:
            seen.setdefault(each["object"], []).append((each["x"], each["y"]))

    for ride in drives.brief + drives.beside + drives.behind:
        assert len(seen[ride.object]) == ride.frames
    assert [ride.frames for ride in drives.brief] == [11, 11]
    assert {abs(y) > 2 < x for ride in drives.beside for x, y in seen[ride.object]} == {True}
    assert {x < 0 < 2 - abs(y) for ride in drives.behind for x, y in seen[ride.object]} == {True}
    assert (len(drives.beside), len(drives.behind)) == (2, 2)


def test_slow_pedestrians_and_cyclists_are_seen_by_both_cameras(
    drives: object_annotation.ObjectAnnotation,
) -> None:
    kinds: dict[tuple[str, str], set[str]] = {}
    for row in drives.table.to_pylist():
        for camera in ("left", "right"):
            for each in row[camera]:
                kinds.setdefault((camera, each["object"]), set()).add(each["kind"])

    for fact, kind in ((drives.slow, "pedestrian"), (drives.cyclists, "bicycle")):
        assert len(fact) == 2
        for seen in fact:
            assert kinds["left", seen.object] == kinds["right", seen.object] == {kind}
    for seen in drives.slow:
        apart = [abs(a - b) for a, b in product(seen.left, seen.right)]
        assert min(apart) > timedelta(seconds=2)
    for seen in drives.cyclists:
        apart = [abs(a - b) for a, b in product(seen.left, seen.right)]
        assert max(apart) < timedelta(seconds=2)


def test_the_same_seed_gives_the_same_table_and_another_seed_does_not() -> None:
    table = object_annotation.frames(seed=1, out_of_order=1)

    assert object_annotation.frames(seed=1, out_of_order=1).equals(table)
    assert not object_annotation.frames(seed=2, out_of_order=1).equals(table)


def test_every_car_takes_ten_frames_a_second_of_what_is_around_it() -> None:
    table = object_annotation.frames(
        cars=3, seconds=10, objects=7, bicycles=0, crossings=0, decoys=0, seed=3
    )

    rows = table.to_pylist()

    assert [row["ts"] for row in rows] == sorted(row["ts"] for row in rows)
    for car in range(3):
        own = [row for row in rows if row["car"] == car]
        micros = [(row["ts"] - EIGHT) // timedelta(microseconds=1) for row in own]
        assert micros == [micros[0] + 100_000 * i for i in range(100)]
        assert micros[0] < 100_000
        for row in own:
            assert [each["object"] for each in row["lidar"]] == [f"{car}-{i}" for i in range(7)]
            assert row["left"] == [each for each in row["lidar"] if each["y"] > 2]
            assert row["right"] == [each for each in row["lidar"] if each["y"] < -2]
            assert (len(row["left"]), len(row["right"])) == (3, 4)


def test_a_frame_takes_kilobytes() -> None:
    table = object_annotation.frames()

    assert 1_500 < table.nbytes / table.num_rows < 2_500


def test_rows_arrive_out_of_order_by_at_most_what_was_asked(
    drives: object_annotation.ObjectAnnotation,
) -> None:
    times = drives.table["ts"].to_pylist()
    latest = times[0]
    behind = []
    for time in times:
        latest = max(latest, time)
        behind.append((latest - time).total_seconds())

    assert 1 < max(behind) <= OUT_OF_ORDER


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cars": 0}, r"`cars` is 1 or more; got 0"),
        ({"objects": 1}, r"`objects` is 2 or more, one on each side; got 1"),
        ({"ahead": (11, 20)}, r"`ahead` is .* 12 <= fewest <= most; got \(11, 20\)"),
        ({"seconds": 4, "ahead": (12, 20)}, r"a fact of 42 frames needs 5 seconds; got 4"),
        ({"seconds": 6, "ahead": (15, 61)}, r"a fact of 61 frames needs 7 seconds; got 6"),
    ],
)
def test_a_plan_that_does_not_fit_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        object_annotation.generate(**options)


def test_files_hold_the_frames_and_end_with_the_closing_one(tmp_path: Path) -> None:
    table = object_annotation.frames(cars=1, seconds=6)
    closing = object_annotation.closing_frame(table)

    parts = write_files(table, tmp_path, files=2, closing=closing)

    written = pa.concat_tables([pq.read_table(part.path) for part in parts])
    assert written.to_pylist() == [*table.to_pylist(), *closing.to_pylist()]
    assert closing["ts"].to_pylist() == [max(table["ts"].to_pylist()) + timedelta(minutes=1)]


# Spark.

QUERIES = [
    (object_annotation.bicycles_ahead, object_annotation.expected_bicycles_ahead),
    (object_annotation.crossings, object_annotation.expected_crossings),
]


@pytest.mark.parametrize(("query", "truth"), QUERIES, ids=["bicycles", "crossings"])
def test_results_in_batch_and_stream_are_as_expected(
    query: Any,
    truth: Callable[[pa.Table], list[Expected]],
    drives: object_annotation.ObjectAnnotation,
    folder: Path,
    spark: SparkSession,
    stream: Stream,
    finish: Finish,
    in_order: InOrder,
) -> None:
    expected = in_order([hit.values for hit in truth(drives.table)])

    batch = query(spark.read.parquet(str(folder)))
    streamed = finish(query(stream(folder, object_annotation.SCHEMA)))

    assert in_order(batch.toArrow().to_pylist()) == expected
    assert in_order(streamed.rows) == expected
    assert streamed.kept_by_joins == 0


@pytest.mark.parametrize(("query", "truth"), QUERIES, ids=["bicycles", "crossings"])
def test_the_traced_rows_alone_make_the_result_again(
    query: Any,
    truth: Callable[[pa.Table], list[Expected]],
    drives: object_annotation.ObjectAnnotation,
    spark: SparkSession,
) -> None:
    hit = truth(drives.table)[0]
    traced = drives.table.take(sorted(hit.rows["frames"]))

    again = query(spark.createDataFrame(traced))

    assert hit.values in again.toArrow().to_pylist()


@pytest.mark.parametrize(("query", "truth"), QUERIES, ids=["bicycles", "crossings"])
def test_traces_in_batch_are_as_expected(
    query: Any,
    truth: Callable[[pa.Table], list[Expected]],
    drives: object_annotation.ObjectAnnotation,
    folder: Path,
    spark: SparkSession,
) -> None:
    traced = query(clew.trace(spark.read.parquet(str(folder)), "frames"))

    assert found(collect_traces(traced)) == wanted(truth(drives.table), drives.table)


@pytest.mark.parametrize("capture", ["sets", "pointers"])
@pytest.mark.parametrize(("query", "truth"), QUERIES, ids=["bicycles", "crossings"])
def test_traces_of_a_stream_are_as_expected(
    query: Any,
    truth: Callable[[pa.Table], list[Expected]],
    capture: str,
    drives: object_annotation.ObjectAnnotation,
    folder: Path,
    stream: Stream,
    tmp_path: Path,
) -> None:
    traced = query(clew.trace(stream(folder, object_annotation.SCHEMA), "frames"))

    run_stream(traced, tmp_path / "prov", "hits", checkpoint=tmp_path / "chk", capture=capture)
    clew.open(tmp_path / "prov").unfold("hits")

    traces = all_traces(tmp_path / "prov", "hits")
    assert found(traces) == wanted(truth(drives.table), drives.table)


def found(traces: list[Traced]) -> list[Any]:
    """Each result, and the frames behind it: their cars and times."""
    return sorted(
        (
            repr(without_zone(trace.values)),
            sorted((row["car"], without_zone(row["ts"])) for row in trace.sources["frames"]),
        )
        for trace in traces
    )


def wanted(hits: list[Expected], table: pa.Table) -> list[Any]:
    rows = table.select(["car", "ts"]).to_pylist()
    return sorted(
        (
            repr(without_zone(dict(hit.values))),
            sorted((rows[i]["car"], without_zone(rows[i]["ts"])) for i in hit.rows["frames"]),
        )
        for hit in hits
    )
