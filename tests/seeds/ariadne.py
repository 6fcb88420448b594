"""Worked examples of Ariadne: the overheating sensors of its Figures 1 and 3, and its join.

The figures are lost, but Examples 1 and 2 and the walk through p-join and replay name enough
tuple ids to rebuild streams 5 to 8 of Figure 3; the readings in front of them are made to fit.
Rows are labelled with the paper's ids, stream before tuple. Cases run on Spark's own verbs, which
have neither windows that count rows nor a bounded sort; where readings come once per time unit, a
time window holds the same rows. `windows/test_papers.py` has them as they are. Start at `CASES`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from seeds.case import SeedCase, SeedSource, row, since_epoch

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seeds.case import Frame, Values

SEED = "ariadne.txt"
READINGS = "label STRING, ti TIMESTAMP, l INT, t DOUBLE"


def _reading(label: str, time: int, location: int, temperature: float) -> Values:
    return {"label": label, "ti": since_epoch(time), "l": location, "t": temperature}


def _values(reading: Values) -> Values:
    return {name: value for name, value in reading.items() if name != "label"}


# The averages over three readings, starting with 1:2 and with 2:1, are those of stream 5 below.
SENSOR_1 = (
    _reading("1:1", 1, 1, 399.0),
    _reading("1:2", 2, 1, 80.0),
    _reading("1:3", 3, 1, 84.8),
    _reading("1:4", 4, 1, 89.0),
    _reading("1:5", 5, 1, 90.2),
    _reading("1:6", 6, 1, 99.8),
)
SENSOR_2 = (
    _reading("2:1", 1, 2, 90.0),
    _reading("2:2", 2, 2, 95.0),
    _reading("2:3", 3, 2, 94.0),
    _reading("2:4", 4, 2, 99.0),
    _reading("2:5", 5, 2, 98.0),
)
STREAM_5 = (
    _reading("7:1", 2, 1, 84.6),
    _reading("7:2", 3, 1, 88.0),
    _reading("7:3", 4, 1, 93.0),
    _reading("7:4", 1, 2, 93.0),
    _reading("7:5", 2, 2, 96.0),
    _reading("7:6", 3, 2, 97.0),
)


def _sensors(*, closed: bool) -> Mapping[str, SeedSource]:
    """Return both sensors as sources, in two micro-batches each."""
    return {
        "S1": SeedSource(
            schema=READINGS,
            event_time="ti",
            batches=(SENSOR_1[:3], SENSOR_1[3:]),
            closing=_reading("closing S1", 600, 1, 20.0) if closed else None,
        ),
        "S2": SeedSource(
            schema=READINGS,
            event_time="ti",
            batches=(SENSOR_2[:3], SENSOR_2[3:]),
            closing=_reading("closing S2", 600, 2, 20.0) if closed else None,
        ),
    }


def _without_outliers(sensor: Frame) -> Frame:
    return sensor.filter("t <= 350").select("ti", "l", "t")


def _cleaned(frames: Mapping[str, Frame]) -> Mapping[str, Frame]:
    both = _without_outliers(frames["S1"]).unionByName(_without_outliers(frames["S2"]))
    return {"cleaned": both}


SELECTION_UNION = SeedCase(
    name="ariadne-selection-union",
    seed=SEED,
    where="Sections 1.1 and 3.1, Figures 1 and 3, Example 1; Definition 3.1",
    note=(
        "From the text: each sensor's readings above 350 degrees are dropped, 1:1 = (1, 1, 399) "
        "among them; a selection and a union hand their rows on, so each result has one source "
        "row. Made to fit: all other readings. The network's aggregation over three readings "
        "stands between the selections and the union and is left out here."
    ),
    sources=_sensors(closed=False),
    pipeline=_cleaned,
    expected={
        "cleaned": tuple(
            row(_values(reading), str(reading["label"])) for reading in (*SENSOR_1[1:], *SENSOR_2)
        )
    },
)


def _hot_locations(averages: Frame) -> Frame:
    """Count the locations above 90 degrees in each window of two time units."""
    return (
        averages.filter("t > 90")
        .groupBy(F.window("ti", "2 seconds", "1 second"))
        .agg(F.count("*").alias("n"), F.collect_set("l").alias("places"))
        .filter("n = 2")
        .select(F.size("places").alias("locations"))
    )


def _from_stream_5(frames: Mapping[str, Frame]) -> Mapping[str, Frame]:
    stream_8 = _hot_locations(frames["stream 5"])
    return {"stream 8": stream_8, "S_out": stream_8.filter("locations >= 2")}


FIGURE_3 = SeedCase(
    name="ariadne-figure-3-streams-5-to-8",
    seed=SEED,
    where="Sections 2.2 and 3, Figures 3 and 9, Examples 1, 2, 4 and 5",
    note=(
        "From the text: 5:1, the first average, is (2, 1, 84.6); the sort's first output stems "
        "from 7:4; p-join pairs the first result (1) with (1, 2) and (2, 2), which are 7:4 and "
        "7:5; 10:2 stems from {7:5, 7:6}, 10:3 from {7:3, 7:6} and is the first to count 2 "
        "locations; fewer than 2 are dropped at the end. So sensor 1 gives 7:1 to 7:3 with times "
        "2 to 4 and sensor 2 gives 7:4 to 7:6 with times 1 to 3. Made to fit: the other "
        "temperatures. The sort only orders rows, which event time does here. Spark also forms "
        "windows at the rim; two rows in a window, as the text has it, keeps those of the paper. "
        "Section 3.1 defines the window once by a difference of less than its size and once by "
        "at most its size: less is taken, else three rows would share a window. Section 1.1 "
        "asks for three sensors where Example 1 asks for two: two are taken. Results 10:1 and "
        "10:2 have equal content and different source rows."
    ),
    sources={
        "stream 5": SeedSource(
            schema=READINGS,
            event_time="ti",
            batches=(STREAM_5[:3], STREAM_5[3:]),
            closing=_reading("closing", 600, 0, 99.0),
        )
    },
    pipeline=_from_stream_5,
    delay="5 seconds",
    expected={
        "stream 8": (
            row({"locations": 1}, "7:4", "7:5"),
            row({"locations": 1}, "7:5", "7:6"),
            row({"locations": 2}, "7:3", "7:6"),
        ),
        "S_out": (row({"locations": 2}, "7:3", "7:6"),),
    },
)


def _averages(sensor: Frame) -> Frame:
    """Average three readings, one time unit apart, at a time."""
    return (
        _without_outliers(sensor)
        .groupBy(F.window("ti", "3 seconds", "1 second"), "l")
        .agg(F.count("*").alias("n"), F.avg("t").alias("average"))
        .filter("n = 3")
        .select(F.window_time("window").alias("ti"), "l", F.round("average", 1).alias("t"))
    )


def _network(frames: Mapping[str, Frame]) -> Mapping[str, Frame]:
    averages = _averages(frames["S1"]).unionByName(_averages(frames["S2"]))
    return {"S_out": _hot_locations(averages).filter("locations >= 2")}


NETWORK = SeedCase(
    name="ariadne-figure-3-whole-network",
    seed=SEED,
    where="Sections 1.1 and 3, Figures 1, 3 and 8(a), Examples 1 and 3",
    note=(
        "The whole network, from both sensors to the alert. Its windows of three readings are "
        "time windows of three units that hold three readings, which is the same since readings "
        "come once per unit; the sort is left to event time. From the text: 1:1 is dropped, the "
        "first average of sensor 1 covers 1:2 to 1:4 and is 84.6. The alert is 10:3, made from "
        "7:3, the average of 1:4 to 1:6, and 7:6, the average of 2:3 to 2:5. Made to fit: all "
        "readings but 1:1."
    ),
    sources=_sensors(closed=True),
    pipeline=_network,
    expected={
        "S_out": (row({"locations": 2}, "1:4", "1:5", "1:6", "2:3", "2:4", "2:5"),),
    },
)


def _value_join(frames: Mapping[str, Frame]) -> Mapping[str, Frame]:
    left = frames["S1"].select("l", "ti", F.col("t").alias("inside"))
    right = frames["S2"].select(
        F.col("l").alias("l2"), F.col("ti").alias("ti2"), F.col("t").alias("outside")
    )
    pairs = left.join(
        right, F.expr("l = l2 and ti2 > ti and ti2 < ti + interval 3 seconds"), "inner"
    )
    return {"pairs": pairs.select("ti", "ti2", "inside", "outside")}


VALUE_JOIN = SeedCase(
    name="ariadne-value-join",
    seed=SEED,
    where="Section 3.1, join windows by value; Section 3.2, provenance of a join",
    note=(
        "From the text: each left row meets the right rows whose value lies between its own and "
        "its own plus s, both ends left out by the formula; the pair's source rows are the union "
        "of those of both partners. Made to fit: all rows and s = 3. Right rows at both ends of "
        "the window of 1:1, times 1 and 4, do not pair with it."
    ),
    sources={
        "S1": SeedSource(
            schema=READINGS,
            event_time="ti",
            batches=((_reading("1:1", 1, 1, 20.0),), (_reading("1:2", 5, 1, 21.0),)),
            closing=_reading("closing S1", 600, 1, 0.0),
        ),
        "S2": SeedSource(
            schema=READINGS,
            event_time="ti",
            batches=(
                (
                    _reading("2:1", 1, 1, 30.0),
                    _reading("2:2", 2, 1, 31.0),
                    _reading("2:3", 3, 1, 32.0),
                ),
                (_reading("2:4", 4, 1, 33.0), _reading("2:5", 7, 1, 34.0)),
            ),
            closing=_reading("closing S2", 600, 1, 0.0),
        ),
    },
    pipeline=_value_join,
    expected={
        "pairs": tuple(
            row(
                {
                    "ti": since_epoch(time),
                    "ti2": since_epoch(other_time),
                    "inside": inside,
                    "outside": outside,
                },
                *labels,
            )
            for time, other_time, inside, outside, labels in (
                (1, 2, 20.0, 31.0, ("1:1", "2:2")),
                (1, 3, 20.0, 32.0, ("1:1", "2:3")),
                (5, 7, 21.0, 34.0, ("1:2", "2:5")),
            )
        )
    },
)


def _projection(frames: Mapping[str, Frame]) -> Mapping[str, Frame]:
    warm = frames["S"].filter("t > 50")
    return {"O": warm.select("l", (F.col("t") * 1.8 + 32).alias("fahrenheit"))}


DUPLICATES = SeedCase(
    name="ariadne-duplicates",
    seed=SEED,
    where="Section 3.1, selection and projection; Section 3.2, Definition 3.1",
    note=(
        "From the text: a selection and a projection have one source row for each result; equal "
        "results are told apart, each keeps the provenance of its own occurrence. Made to fit: "
        "all rows; the projection drops the time, so two results are equal."
    ),
    sources={
        "S": SeedSource(
            schema=READINGS,
            event_time="ti",
            batches=(
                (_reading("1:1", 1, 1, 100.0), _reading("1:2", 2, 1, 40.0)),
                (_reading("1:3", 3, 1, 100.0),),
            ),
        )
    },
    pipeline=_projection,
    expected={
        "O": (
            row({"l": 1, "fahrenheit": 212.0}, "1:1"),
            row({"l": 1, "fahrenheit": 212.0}, "1:3"),
        )
    },
)

CASES = (SELECTION_UNION, FIGURE_3, NETWORK, VALUE_JOIN, DUPLICATES)
