"""Worked examples of Ananke: the cars of its Figure 1, window offsets, and the ripple of Figure 5.

The text names the operators and the limits; positions, report times and window advances stand in
figures that we do not have, so the data here is made to fit every sentence about them. Start at
`CASES`; `LIVE_GRAPHS` says how the first case looks while it runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql import functions as F

from seeds.case import SeedCase, SeedSource, at, row

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from seeds.case import Frame, Values

SEED = "ananke.txt"
CELL_KM = 5
WINDOW_MINUTES = 15


def _report(label: str, clock: str, car: int, x: int, y: int) -> Values:
    return {"label": label, "ts": at(clock), "car": car, "x": x, "y": y}


def _visits_and_speeding(frames: Mapping[str, Frame]) -> Mapping[str, Frame]:
    """Build Q1, three reports from region R, and Q2, a mean speed above 110 km/h."""
    last_minutes = F.window("ts", f"{WINDOW_MINUTES} minutes", "5 minutes")
    visits = (
        frames["S"]
        .filter("x between 4 and 8 and y between 2 and 5")
        .groupBy(last_minutes, "car")
        .agg(F.count("*").alias("reports"))
        .filter("reports > 2")
        .select(F.col("window.end").alias("ts"), "car", "reports")
    )
    kilometres = F.hypot(F.col("x2") - F.col("x1"), F.col("y2") - F.col("y1")) * CELL_KM
    seconds = F.unix_timestamp("t2") - F.unix_timestamp("t1")
    speeding = (
        frames["S"]
        .groupBy(last_minutes, "car")
        .agg(
            F.count("*").alias("reports"),
            F.min("ts").alias("t1"),
            F.max("ts").alias("t2"),
            F.min_by("x", "ts").alias("x1"),
            F.max_by("x", "ts").alias("x2"),
            F.min_by("y", "ts").alias("y1"),
            F.max_by("y", "ts").alias("y2"),
        )
        .withColumn("speed", F.try_divide(kilometres * 3600, seconds))
        .filter("speed > 110")
        .select(F.col("window.end").alias("ts"), "car", "reports", "speed")
    )
    return {"K1": visits, "K2": speeding}


RUNNING_EXAMPLE = SeedCase(
    name="ananke-running-example",
    seed=SEED,
    where="Sections 1 to 3, Figures 1, 3 and 4",
    note=(
        "From the text: reports every 5 minutes with car and position; Q1 counts a car's reports "
        "from region R and passes counts above 2, which can only be 3, so the window is 15 "
        "minutes; Q2 passes mean speeds above 110 km/h over 15 minutes, and four cells in three "
        "reports are 120 km/h, so a cell is 5 km; results carry the right end of their window; "
        "the graph is shown at 8:16, 8:21 and 8:22, and results share source rows, so windows "
        "overlap. Made to fit: a 5 minute advance, the positions and region R (x 4 to 8, y 2 to "
        "5), car 1 reporting at minutes 1 and 6 and car 2 at minutes 2 and 7, so that each of "
        "the three times is the time of a report. Mean speed is the distance between the first "
        "and last position over the time between them. The count beside the speed is ours: with "
        "it the middle report matters too. The alert of 8:25 comes after the last graph shown, "
        "and hangs on rows that are alive in it and already carry edges to the other sink."
    ),
    sources={
        "S": SeedSource(
            schema="label STRING, ts TIMESTAMP, car INT, x INT, y INT",
            event_time="ts",
            batches=(
                (
                    _report("t_1^1", "8:01", 1, 5, 3),
                    _report("t_2^1", "8:02", 2, 0, 4),
                    _report("t_1^2", "8:06", 1, 5, 3),
                    _report("t_2^2", "8:07", 2, 1, 4),
                    _report("t_1^3", "8:11", 1, 5, 3),
                    _report("t_2^3", "8:12", 2, 3, 4),
                    _report("t_1^4", "8:16", 1, 8, 3),
                ),
                (
                    _report("t_2^4", "8:17", 2, 5, 4),
                    _report("t_1^5", "8:21", 1, 9, 3),
                ),
                (_report("t_2^5", "8:22", 2, 5, 4),),
            ),
            closing=_report("closing", "12:00", 0, 5, 3),
        )
    },
    pipeline=_visits_and_speeding,
    expected={
        "K1": (
            row({"ts": at("8:15"), "car": 1, "reports": 3}, "t_1^1", "t_1^2", "t_1^3"),
            row({"ts": at("8:20"), "car": 1, "reports": 3}, "t_1^2", "t_1^3", "t_1^4"),
        ),
        "K2": (
            row(
                {"ts": at("8:20"), "car": 2, "reports": 3, "speed": 120.0},
                *("t_2^2", "t_2^3", "t_2^4"),
            ),
            row(
                {"ts": at("8:25"), "car": 1, "reports": 3, "speed": 120.0},
                *("t_1^3", "t_1^4", "t_1^5"),
            ),
        ),
    },
)


class LiveGraph(NamedTuple):
    """The live graph of the running example at one watermark.

    Attributes:
        watermark: The watermark of both sinks.
        alerts: Labels of the source rows of each alert; `a_j^i` is the i-th alert of query j.
        expired: Labels of those source rows of the graph that can reach no later alert. An alert
            is expired as soon as it is there.
    """

    watermark: datetime
    alerts: Mapping[str, frozenset[str]]
    expired: frozenset[str]


A_1_1 = RUNNING_EXAMPLE.expected["K1"][0].labels
A_1_2 = RUNNING_EXAMPLE.expected["K1"][1].labels
A_2_1 = RUNNING_EXAMPLE.expected["K2"][0].labels

# A row is expired once it is older than watermark minus U, and U is the one window of 15 minutes
# on either path: at 8:16 a row of 8:01 is just not old enough.
LIVE_GRAPHS = (
    LiveGraph(at("8:16"), {"a_1^1": A_1_1}, frozenset()),
    LiveGraph(at("8:21"), {"a_1^1": A_1_1, "a_1^2": A_1_2, "a_2^1": A_2_1}, frozenset({"t_1^1"})),
    LiveGraph(
        at("8:22"),
        {"a_1^1": A_1_1, "a_1^2": A_1_2, "a_2^1": A_2_1},
        frozenset({"t_1^1", "t_1^2"}),
    ),
)


def _count_per_hour(frames: Mapping[str, Frame]) -> Mapping[str, Frame]:
    counts = (
        frames["S"]
        .groupBy(F.window("ts", "60 minutes", "10 minutes", "5 minutes"))
        .agg(F.count("*").alias("n"))
        .filter("n = 2")
        .select(F.col("window.start").alias("start"), F.col("window.end").alias("end"), "n")
    )
    return {"K": counts}


WINDOW_OFFSET = SeedCase(
    name="ananke-window-offset",
    seed=SEED,
    where="Section 2.1, size, advance and offset of windows",
    note=(
        "From the text: size 60, advance 10 and offset 5 minutes give [00:05, 01:05) and "
        "[00:15, 01:15); the left end belongs to a window, the right end does not. Made to fit: "
        "one row on the left end of the first window, one a minute before its right end, one on "
        "it. The text prints both windows with a closing bracket and says two sentences later "
        "that the right end is exclusive; the sentence is taken. Only windows of two rows are "
        "kept, to leave out those at the rim."
    ),
    sources={
        "S": SeedSource(
            schema="label STRING, ts TIMESTAMP",
            event_time="ts",
            batches=(
                ({"label": "left end", "ts": at("00:05")},),
                (
                    {"label": "inside", "ts": at("01:04")},
                    {"label": "right end", "ts": at("01:05")},
                ),
            ),
            closing={"label": "closing", "ts": at("12:00")},
        )
    },
    pipeline=_count_per_hour,
    expected={
        "K": (
            row({"start": at("00:05"), "end": at("01:05"), "n": 2}, "left end", "inside"),
            *(
                row(
                    {"start": at(f"00:{minute}"), "end": at(f"01:{minute}"), "n": 2},
                    *("inside", "right end"),
                )
                for minute in (15, 25, 35, 45, 55)
            ),
        )
    },
)


def _ripple(frames: Mapping[str, Frame]) -> Mapping[str, Frame]:
    """Build A1, M, A2 and F in a row, each aggregate with windows twice as long as its advance."""
    windows = ("20 minutes", "10 minutes")
    result = (
        frames["S"]
        .groupBy(F.window("ts", *windows))
        .agg(F.sum("value").alias("total"))
        .select(F.window_time("window").alias("ts"), (F.col("total") * 2).alias("doubled"))
        .groupBy(F.window("ts", *windows))
        .agg(F.sum("doubled").alias("total"))
        .filter("total > 100")
        .select(F.col("window.end").alias("ts"), "total")
    )
    return {"K": result}


RIPPLE = SeedCase(
    name="ananke-ripple",
    seed=SEED,
    where="Section 4, Figure 5",
    note=(
        "From the text: a source row falls into two windows of A1; their two outputs pass a map "
        "and reach three windows of A2; a filter drops two of the three results, one arrives. "
        "Made to fit: windows of 20 minutes every 10, values, limits. `t_S` is the row of the "
        "text; the other row shares a window of A1 with it, so it is in the one result too. Spark "
        "gives the output of a window the last microsecond of it and not its right end, so A2's "
        "windows lie one advance earlier than the text would put them; their number is the same."
    ),
    sources={
        "S": SeedSource(
            schema="label STRING, ts TIMESTAMP, value INT",
            event_time="ts",
            batches=(
                ({"label": "t_S", "ts": at("08:12"), "value": 30},),
                ({"label": "neighbour", "ts": at("08:22"), "value": 5},),
            ),
            closing={"label": "closing", "ts": at("12:00"), "value": 0},
        )
    },
    pipeline=_ripple,
    expected={"K": (row({"ts": at("08:30"), "total": 130}, "t_S", "neighbour"),)},
)

CASES = (RUNNING_EXAMPLE, WINDOW_OFFSET, RIPPLE)
