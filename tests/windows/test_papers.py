"""The papers' worked examples of windows over rows in order, number for number.

Times of the thesis are seconds after 1970 here, and its sequence numbers label the rows. Its keys
hold the delay of an operator, which Spark's results do not have: a result is of the moment of its
last row, `t - d` in the thesis's terms.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F

import clew
from frames import batch_traces
from seeds.ariadne import SENSOR_1, SENSOR_2, STREAM_5
from seeds.case import since_epoch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

    from clew.testing import Traced

    Frame = clew.TracedFrame

CAPTURES = ("sets", "pointers")
FIRST = [(1, 55), (11, 60), (21, 65), (31, 70), (41, 75)]
"""Stream 1 of every example: times and contents."""


def events(spark: SparkSession, name: str, given: Sequence[tuple[int, int]]) -> Frame:
    rows = [(n, since_epoch(t), e) for n, (t, e) in enumerate(given, 1)]
    df = spark.createDataFrame(rows, "n long, t timestamp, e long")
    return clew.trace(df, name, id=["n"], event_time="t")


def second(when: Any) -> int:
    return int((when.replace(tzinfo=None) - since_epoch(0).replace(tzinfo=None)).total_seconds())


def ancestors(trace: Traced) -> dict[str, list[int]]:
    return {s: sorted(row["n"] for row in rows) for s, rows in trace.sources.items()}


@pytest.mark.parametrize("capture", CAPTURES)
@pytest.mark.parametrize(
    ("figure", "build", "outputs", "of_the_fifth"),
    [
        (
            "3.28",
            lambda o: o.timeWindow("20 seconds"),
            [[55], [60, 55], [65, 60, 55], [70, 65, 60], [75, 70, 65]],
            [3, 4, 5],
        ),
        (
            "3.30",
            lambda o: o.countWindow(4, partial=True),
            [[55], [60, 55], [65, 60, 55], [70, 65, 60, 55], [75, 70, 65, 60]],
            [2, 3, 4, 5],
        ),
    ],
)
def test_a_window_of_the_thesis(
    spark: SparkSession,
    tmp_path: Path,
    capture: str,
    figure: str,
    build: Callable[[Any], Frame],
    outputs: list[list[int]],
    of_the_fifth: list[int],
) -> None:
    made = build(events(spark, "S", FIRST).inOrder())
    # The thesis lists the newest first.
    traces = batch_traces(
        made.select("t", F.reverse("rows.e").alias("e")), tmp_path, capture=capture
    )
    traces.sort(key=lambda trace: trace.values["t"])

    assert [trace.values["e"] for trace in traces] == outputs
    assert [second(trace.values["t"]) for trace in traces] == [1, 11, 21, 31, 41]
    assert ancestors(traces[4]) == {"S": of_the_fifth}


@pytest.mark.parametrize("capture", CAPTURES)
def test_the_time_window_join_of_figure_3_32(
    spark: SparkSession, tmp_path: Path, capture: str
) -> None:
    """The text asks for the key (44, 9) with a delay of 1, the listing with 2: the listing counts,
    since its outputs have that delay."""
    other = [(2, 70), (12, 75), (22, 80), (32, 65), (42, 85)]
    one, two = events(spark, "S1", FIRST), events(spark, "S2", other)
    joined = one.inOrder().join(two.inOrder(), "10 seconds", pairs="all")

    found = by_moment(joined, tmp_path, capture)
    assert {at: pairs for at, (pairs, _) in found.items()} == {
        2: [(55, 70)],
        11: [(55, 70), (60, 70)],
        12: [(60, 70), (60, 75)],
        21: [(60, 75), (65, 75)],
        22: [(65, 75), (65, 80)],
        31: [(65, 80), (70, 80)],
        32: [(70, 65), (70, 80)],
        41: [(70, 65), (75, 65)],
        42: [(75, 65), (75, 85)],
    }
    assert found[42][1] == {"S1": [5], "S2": [4, 5]}


@pytest.mark.parametrize("capture", CAPTURES)
def test_the_length_window_join_of_figure_3_34(
    spark: SparkSession, tmp_path: Path, capture: str
) -> None:
    """The text asks for the key (44, 9), the listing for (43, 9), which is the one that exists."""
    other = [(2, 70), (12, 75), (22, 80), (32, 85), (42, 90)]
    one, two = events(spark, "S1", FIRST), events(spark, "S2", other)
    joined = one.inOrder().join(two.inOrder(), rows=2, pairs="all")

    found = by_moment(joined, tmp_path, capture)
    assert {at: pairs for at, (pairs, _) in found.items()} == {
        2: [(55, 70)],
        11: [(55, 70), (60, 70)],
        12: [(55, 70), (55, 75), (60, 70), (60, 75)],
        21: [(60, 70), (60, 75), (65, 70), (65, 75)],
        22: [(60, 75), (60, 80), (65, 75), (65, 80)],
        31: [(65, 75), (65, 80), (70, 75), (70, 80)],
        32: [(65, 80), (65, 85), (70, 80), (70, 85)],
        41: [(70, 80), (70, 85), (75, 80), (75, 85)],
        42: [(70, 85), (70, 90), (75, 85), (75, 90)],
    }
    assert found[42][1] == {"S1": [4, 5], "S2": [4, 5]}


def by_moment(joined: Frame, folder: Path, capture: str) -> dict[int, tuple[Any, Any]]:
    pairs = F.transform("pairs", lambda p: F.struct(p["left"]["e"].alias("l"), p["right"]["e"]))
    traces = batch_traces(joined.select("t", pairs.alias("p")), folder, capture=capture)
    return {
        second(trace.values["t"]): (
            sorted(tuple(pair.values()) for pair in trace.values["p"]),
            ancestors(trace),
        )
        for trace in traces
    }


def sensor(spark: SparkSession, name: str, readings: Sequence[Any]) -> Frame:
    """Trace readings of Ariadne, with the order in which they come as event time."""
    rows = [(r["label"], since_epoch(i), r["ti"], r["l"], r["t"]) for i, r in enumerate(readings)]
    kind = "label string, came timestamp, ti timestamp, l int, t double"
    return clew.trace(spark.createDataFrame(rows, kind), name, id=["label"], event_time="came")


def labels(traces: Sequence[Traced]) -> list[tuple[Any, list[str]]]:
    return sorted(
        (t.values["value"], sorted(label for _, label in t.refs("label"))) for t in traces
    )


@pytest.mark.parametrize("capture", CAPTURES)
def test_ariadne_averages_three_readings(spark: SparkSession, tmp_path: Path, capture: str) -> None:
    """Streams 3 and 4 of Figure 3: windows of three rows, slide one, behind the selection."""
    for name, readings in (("S1", SENSOR_1), ("S2", SENSOR_2)):
        cool = sensor(spark, name, readings).filter("t <= 350")
        threes = cool.inOrder(time="came").countWindow(3)
        mean = F.expr("round(aggregate(rows.t, 0D, (a, b) -> a + b) / 3, 1)")
        first = F.array_min("rows.ti").alias("ti")
        averages = threes.select(first, mean.alias("value"))
        traces = batch_traces(averages, tmp_path / name, capture=capture)
        expected = {
            "S1": [
                (84.6, ["1:2", "1:3", "1:4"]),
                (88.0, ["1:3", "1:4", "1:5"]),
                (93.0, ["1:4", "1:5", "1:6"]),
            ],
            "S2": [
                (93.0, ["2:1", "2:2", "2:3"]),
                (96.0, ["2:2", "2:3", "2:4"]),
                (97.0, ["2:3", "2:4", "2:5"]),
            ],
        }
        assert labels(traces) == expected[name]


@pytest.mark.parametrize("capture", CAPTURES)
def test_ariadne_sorts_and_counts_locations(
    spark: SparkSession, tmp_path: Path, capture: str
) -> None:
    """Streams 5 to 8 of Figure 3: a bounded sort on time, a selection, windows of two time units.

    10:1 to 10:3 are from {7:4, 7:5}, {7:5, 7:6} and {7:3, 7:6}, and the third has two locations.
    The text has a window differ by less than its size, the formula by at most its size; of three
    rows one time unit apart only the text's makes windows of two, as Example 2 has them.
    """
    closing = [
        {"label": f"closing {i}", "ti": since_epoch(100 * i), "l": 0, "t": 99.0}
        for i in range(1, 6)
    ]
    averages = sensor(spark, "stream 5", [*STREAM_5, *closing])
    in_time = averages.inOrder().boundedSort("ti", slack=3)
    hot = in_time.filter("t > 90").inOrder(time="sorted_at")
    windows = hot.valueWindow("ti", "2 seconds", "1 second")
    counted = windows.select(F.size(F.array_distinct("rows.l")).alias("value"))

    found = labels(batch_traces(counted, tmp_path, capture=capture))
    kept = [each for each in found if not any(s.startswith("closing") for s in each[1])]
    # The window that begins with 7:3 is closed by what comes next, behind the paper's excerpt.
    assert kept == [
        (1, ["7:3"]),
        (1, ["7:4", "7:5"]),
        (1, ["7:5", "7:6"]),
        (2, ["7:3", "7:6"]),
    ]
