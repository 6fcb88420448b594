"""Worked examples of the reverse-mapping thesis: stream ancestor functions and their composition.

The thesis prints every event with its key, so all numbers here are its own unless a note says
otherwise. A key is (time, sequence number, stream, delay); rows are labelled with it. Times are
small integers and become seconds since the epoch. An operator's delay, measured while it ran, is
constant in the printed examples and is added as a constant. Start at `CASES`.

The thesis' windows fire once per input event and include both ends. Two forms of that exist in
Spark: a sliding window one unit longer whose grid is the grid of the events, and a join of the
stream with itself. Both are cases.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from seeds.case import SeedCase, SeedSource, row, since_epoch

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column

    from seeds.case import Frame, Values

SEED = "reverse-mapping-thesis.txt"
EVENTS = "label STRING, ts TIMESTAMP, seq INT, stream INT, site STRING, value INT"
TIMES = (1, 11, 21, 31, 41)


def _key(time: int, seq: int, stream: int = 1) -> str:
    return f"Key({time},{seq},{stream},0)"


def _event(time: int, seq: int, value: int, stream: int = 1) -> Values:
    return {
        "label": _key(time, seq, stream),
        "ts": since_epoch(time),
        "seq": seq,
        "stream": stream,
        "site": "lab",
        "value": value,
    }


def _closing(stream: int = 1) -> Values:
    name = f"closing {stream}"
    return {**_event(6000, 0, 0, stream), "label": name, "site": name}


def _stream(*values: int, closed: bool) -> SeedSource:
    """Return events of stream 1 at times 1, 11, 21, 31 and 41, in two micro-batches."""
    events = tuple(
        _event(time, seq, value)
        for seq, (time, value) in enumerate(zip(TIMES, values, strict=True), start=1)
    )
    return SeedSource(
        schema=EVENTS,
        event_time="ts",
        batches=(events[:3], events[3:]),
        closing=_closing() if closed else None,
    )


def _delayed(time: str, seconds: int) -> Column:
    return F.expr(f"{time} + interval {seconds} seconds").alias("ts")


def _double(frames: Mapping[str, Frame]) -> Mapping[str, Frame]:
    doubled = (F.col("value") + F.col("value")).alias("value")
    return {"S2": frames["S1"].select(_delayed("ts", 1), "seq", doubled)}


MAP = SeedCase(
    name="thesis-map",
    seed=SEED,
    where="Section 3.4.2, Figures 3.22 to 3.24",
    note="All numbers from the text. The printed query asks for the ancestor of (32, 4, 2, 1).",
    sources={"S1": _stream(55, 60, 65, 70, 75, closed=False)},
    pipeline=_double,
    expected={
        "S2": tuple(
            row({"ts": since_epoch(time), "seq": seq, "value": value}, _key(time - 1, seq))
            for time, seq, value in (
                (2, 1, 110),
                (12, 2, 120),
                (22, 3, 130),
                (32, 4, 140),
                (42, 5, 150),
            )
        )
    },
)


def _at_least_60(frames: Mapping[str, Frame]) -> Mapping[str, Frame]:
    return {"S2": frames["S1"].filter("value >= 60").select(_delayed("ts", 1), "value")}


FILTER = SeedCase(
    name="thesis-filter",
    seed=SEED,
    where="Section 3.4.3, Figures 3.25 and 3.26",
    note=(
        "All numbers from the text; the printed query asks for the ancestor of (22, 2, 2, 1). The "
        "thesis numbers the rows that pass anew, from 1; such a counter over a stream is not "
        "among Spark's row-by-row expressions, so the sink rows carry no sequence number."
    ),
    sources={"S1": _stream(55, 60, 65, 70, 75, closed=False)},
    pipeline=_at_least_60,
    expected={
        "S2": tuple(
            row({"ts": since_epoch(time), "value": value}, _key(time - 1, seq))
            for time, seq, value in ((12, 2, 60), (22, 3, 65), (32, 4, 70), (42, 5, 75))
        )
    },
)


def _newest_first(events: str) -> Column:
    """Return the values of collected (time, value) structs, latest event first."""
    return F.transform(F.sort_array(events, asc=False), lambda event: event["value"])


def _window_on_grid(events: Frame) -> Frame:
    """Form [t - 20, t] for each event time t; the window's end is t + 1, the output time."""
    return (
        events.groupBy(F.window("ts", "21 seconds", "10 seconds", "1 second"))
        .agg(F.collect_list(F.struct("ts", "value")).alias("events"), F.max("ts").alias("last"))
        .filter("last = window.end - interval 1 second")
        .select(F.col("window.end").alias("ts"), _newest_first("events").alias("values"))
    )


TIME_WINDOW_ROWS = tuple(
    row({"ts": since_epoch(time), "values": values}, *(_key(TIMES[n - 1], n) for n in numbers))
    for time, values, numbers in (
        (2, [55], (1,)),
        (12, [60, 55], (1, 2)),
        (22, [65, 60, 55], (1, 2, 3)),
        (32, [70, 65, 60], (2, 3, 4)),
        (42, [75, 70, 65], (3, 4, 5)),
    )
)

TIME_WINDOW = SeedCase(
    name="thesis-time-window-on-a-grid",
    seed=SEED,
    where="Section 3.4.4, Figures 3.27 and 3.28",
    note=(
        "All numbers from the text; the printed query asks for the ancestors of (42, 5, 2, 1). "
        "The window [t - 20, t] fires per input event. Events lie on the grid 1, 11, 21, so a "
        "sliding window of 21 seconds every 10, shifted by 1, holds the same events; those "
        "windows in whose last second no event lies did not fire and are dropped. Spark's window "
        "end t + 1 is the printed time, delay 1 included."
    ),
    sources={"S1": _stream(55, 60, 65, 70, 75, closed=True)},
    pipeline=lambda frames: {"S2": _window_on_grid(frames["S1"])},
    expected={"S2": TIME_WINDOW_ROWS},
)


def _in_window(events: Frame, seconds: int) -> Frame:
    """Pair each event, as the tick that fires the window, with all events in its window."""
    ticks = events.select(F.col("ts").alias("tick"), "stream")
    held = events.select(F.col("stream").alias("held_stream"), "ts", "value")
    within = f"stream = held_stream and ts >= tick - interval {seconds} seconds and ts <= tick"
    return ticks.join(held, F.expr(within), "inner")


def _window_by_join(frames: Mapping[str, Frame]) -> Mapping[str, Frame]:
    windows = (
        _in_window(frames["S1"], 20)
        .groupBy("tick", "stream")
        .agg(F.collect_list(F.struct("ts", "value")).alias("events"))
        .select(_delayed("tick", 1), _newest_first("events").alias("values"))
    )
    return {"S2": windows}


TIME_WINDOW_BY_JOIN = SeedCase(
    name="thesis-time-window-by-self-join",
    seed=SEED,
    where="Section 3.4.4, Figures 3.27 and 3.28",
    note=(
        "The example of the time window again, in the form that asks for no grid: each event is "
        "joined with the events of the 20 seconds up to it, itself among them, and the pairs are "
        "grouped by it. The event that fires a window lies in it, so the join adds no source row."
    ),
    sources={"S1": _stream(55, 60, 65, 70, 75, closed=True)},
    pipeline=_window_by_join,
    expected={"S2": TIME_WINDOW_ROWS},
)


def _composed(frames: Mapping[str, Frame]) -> Mapping[str, Frame]:
    """Build TW, Map(avg) and Filter in a row."""
    averages = (
        frames["S1"]
        .groupBy(F.window("ts", "21 seconds", "10 seconds", "1 second"))
        .agg(
            F.avg("value").alias("average"),
            F.count("*").alias("events"),
            F.max("ts").alias("last"),
        )
        .filter("last = window.end - interval 1 second")
        .select(_delayed("window.end", 2), F.round("average").cast("int").alias("value"), "events")
        .filter("value >= 60")
    )
    return {"S4": averages}


COMPOSITION = SeedCase(
    name="thesis-composed-ancestor-functions",
    seed=SEED,
    where="Section 4.1.1, Figures 4.1 and 4.2",
    note=(
        "All numbers from the text: a window of 20 time units, the rounded average, a filter of "
        "60 and above; three operators of delay 1 add 3 to the time. The printed query asks for "
        "(34, 3, 4, 1) and (44, 4, 4, 1) together and gets events 2 to 5, the union of the two "
        "answers here. The printed composition reads `Map` against the source stream; its input "
        "is the window's output, and only that fits the printed answer. The count of events is "
        "ours: without it a rounded average can stay the same when an event is left out."
    ),
    sources={"S1": _stream(58, 65, 70, 75, 72, closed=True)},
    pipeline=_composed,
    expected={
        "S4": tuple(
            row(
                {"ts": since_epoch(time), "value": value, "events": len(seqs)},
                *(_key(TIMES[n - 1], n) for n in seqs),
            )
            for time, value, seqs in (
                (14, 62, (1, 2)),
                (24, 64, (1, 2, 3)),
                (34, 70, (2, 3, 4)),
                (44, 72, (3, 4, 5)),
            )
        )
    },
)


def _clocked(frames: Mapping[str, Frame]) -> Mapping[str, Frame]:
    windows = (
        frames["T"]
        .groupBy(F.window("ts", "4 seconds", "2 seconds", "1 second"))
        .agg(F.collect_list(F.struct("ts", "value")).alias("events"))
        .filter("window.end <= timestamp_seconds(7)")
        .select(F.col("window.end").alias("ts"), _newest_first("events").alias("values"))
    )
    return {"O": windows}


def _tenths(label: str, seconds: float, value: int) -> Values:
    return {"label": label, "ts": since_epoch(seconds), "value": value}


CLOCK_DRIVEN_WINDOW = SeedCase(
    name="thesis-clock-driven-time-window",
    seed=SEED,
    where="Section 3.3.5.2, Figures 3.11 and 3.13",
    note=(
        "From the text: events arrive at t + 1.5, t + 2.5 and so on, ticks at t + 3, t + 5 and "
        "t + 7, and each tick puts out the events of the window up to it. Made to fit: t = 0, the "
        "window of 4 seconds, later events and all values. A slide of 2 seconds is the clock, so "
        "the ticks are no rows and, as in the thesis, no ancestors; no event lies on a window's "
        "end, where the thesis would count it in and Spark would not. No delay is added."
    ),
    sources={
        "T": SeedSource(
            schema="label STRING, ts TIMESTAMP, value INT",
            event_time="ts",
            batches=(
                (_tenths("T1", 1.5, 10), _tenths("T2", 2.5, 20)),
                (_tenths("T3", 4.5, 30), _tenths("T4", 6.5, 40)),
            ),
            closing=_tenths("closing", 6000, 0),
        )
    },
    pipeline=_clocked,
    expected={
        "O": (
            row({"ts": since_epoch(3), "values": [20, 10]}, "T1", "T2"),
            row({"ts": since_epoch(5), "values": [30, 20, 10]}, "T1", "T2", "T3"),
            row({"ts": since_epoch(7), "values": [40, 30]}, "T3", "T4"),
        )
    },
)

JOIN_S1 = tuple(
    _event(time, seq, value)
    for time, seq, value in ((1, 1, 55), (11, 2, 60), (21, 3, 65), (31, 4, 70), (41, 5, 75))
)
JOIN_S2 = tuple(
    _event(time, seq, value, stream=2)
    for time, seq, value in ((2, 1, 70), (12, 2, 75), (22, 3, 80), (32, 4, 65), (42, 5, 85))
)
JOIN_SOURCES = {
    "S1": SeedSource(
        schema=EVENTS, event_time="ts", batches=(JOIN_S1[:3], JOIN_S1[3:]), closing=_closing(1)
    ),
    "S2": SeedSource(
        schema=EVENTS, event_time="ts", batches=(JOIN_S2[:3], JOIN_S2[3:]), closing=_closing(2)
    ),
}


def _pairs(frames: Mapping[str, Frame]) -> Frame:
    """Pair events of both streams that some window of 10 seconds holds together."""
    first = frames["S1"].select(
        F.col("site").alias("site1"), F.col("ts").alias("t1"), F.col("value").alias("v1")
    )
    second = frames["S2"].select(
        F.col("site").alias("site2"), F.col("ts").alias("t2"), F.col("value").alias("v2")
    )
    return first.join(
        second,
        F.expr(
            "site1 = site2 and t2 >= t1 - interval 10 seconds and t2 <= t1 + interval 10 seconds"
        ),
        "inner",
    )


def _new_pairs(frames: Mapping[str, Frame]) -> Mapping[str, Frame]:
    later = F.expr("greatest(t1, t2) + interval 2 seconds").alias("ts")
    return {"S3": _pairs(frames).select(later, "v1", "v2")}


JOIN_NEW_PAIRS = SeedCase(
    name="thesis-time-window-join-new-pairs",
    seed=SEED,
    where="Section 3.4.6, Figures 3.31 and 3.32",
    note=(
        "The nine outputs of the time-window join each add one pair to what was there before: "
        "the first of their list. This case has those pairs, each with the two events it was "
        "made from. Numbers from the text; `site` is ours, since Spark joins streams on an "
        "equality only."
    ),
    sources=JOIN_SOURCES,
    pipeline=_new_pairs,
    expected={
        "S3": tuple(
            row(
                {"ts": since_epoch(time), "v1": JOIN_S1[one]["value"], "v2": JOIN_S2[two]["value"]},
                *(str(JOIN_S1[one]["label"]), str(JOIN_S2[two]["label"])),
            )
            for time, one, two in (
                (4, 0, 0),
                (13, 1, 0),
                (14, 1, 1),
                (23, 2, 1),
                (24, 2, 2),
                (33, 3, 2),
                (34, 3, 3),
                (43, 4, 3),
                (44, 4, 4),
            )
        )
    },
)


def _all_pairs_per_tick(frames: Mapping[str, Frame]) -> Mapping[str, Frame]:
    """List, at each event of either stream, all pairs of the two windows up to it."""
    ticks = (frames["S1"].select("site", F.col("ts").alias("tick"))).unionByName(
        frames["S2"].select("site", F.col("ts").alias("tick"))
    )
    # A second join accepts one event-time column per side, so the other becomes a number.
    pairs = _pairs(frames).select("site1", "t1", F.unix_micros("t2").alias("m2"), "v1", "v2")
    held = pairs.join(
        ticks,
        F.expr(
            "site1 = site and tick >= t1 and tick <= t1 + interval 10 seconds "
            "and unix_micros(tick) >= m2 and unix_micros(tick) <= m2 + 10000000"
        ),
        "inner",
    )
    lists = (
        held.groupBy("tick", "site")
        .agg(F.collect_list(F.struct("t1", "m2", "v1", "v2")).alias("held"))
        .withColumn("held", F.sort_array("held", asc=False))
        .select(
            _delayed("tick", 2),
            F.transform("held", lambda pair: F.array(pair["v1"], pair["v2"])).alias("pairs"),
        )
    )
    return {"S3": lists}


JOIN_LISTS = SeedCase(
    name="thesis-time-window-join",
    seed=SEED,
    where="Section 3.4.6, Figures 3.20, 3.31 and 3.32",
    note=(
        "Numbers from the text, `site` aside. Each event of either stream is a tick that lists "
        "the pairs of both windows [t - 10, t]; the tick lies in one of them, so it adds no "
        "source row. The prose asks for the ancestors of (44, 9, 3, 1), the code for "
        "(44, 9, 3, 2): delay 2 is taken, as every printed output has it and only with it "
        "(32, 4, 2, 0) is among the ancestors, as printed."
    ),
    sources=JOIN_SOURCES,
    pipeline=_all_pairs_per_tick,
    expected={
        "S3": tuple(
            row(
                {"ts": since_epoch(time), "pairs": [list(pair) for pair in pairs]},
                *(str(JOIN_S1[n - 1]["label"]) for n in ones),
                *(str(JOIN_S2[n - 1]["label"]) for n in twos),
            )
            for time, pairs, ones, twos in (
                (4, ((55, 70),), (1,), (1,)),
                (13, ((60, 70), (55, 70)), (1, 2), (1,)),
                (14, ((60, 75), (60, 70)), (2,), (1, 2)),
                (23, ((65, 75), (60, 75)), (2, 3), (2,)),
                (24, ((65, 80), (65, 75)), (3,), (2, 3)),
                (33, ((70, 80), (65, 80)), (3, 4), (3,)),
                (34, ((70, 65), (70, 80)), (4,), (3, 4)),
                (43, ((75, 65), (70, 65)), (4, 5), (4,)),
                (44, ((75, 85), (75, 65)), (5,), (4, 5)),
            )
        )
    },
)

TEMPERATURES = "label STRING, ts TIMESTAMP, stream INT, temperature DOUBLE"


def _temperature(milliseconds: int, seq: int, temperature: float) -> Values:
    return {
        "label": _key(milliseconds, seq),
        "ts": since_epoch(milliseconds / 1000),
        "stream": 1,
        "temperature": temperature,
    }


FIRST, SECOND, THIRD = (
    _temperature(1279398105675, 1, 76.69),
    _temperature(1279398107678, 2, 99.49),
    _temperature(1279398109678, 3, 93.28),
)


def _case_study(frames: Mapping[str, Frame]) -> Mapping[str, Frame]:
    """Join each reading above 60 with the mean of the five seconds up to it."""
    rounded = frames["1"].select(
        "ts", "stream", F.ceil("temperature").cast("double").alias("value")
    )
    hot = rounded.filter("value > 60").select(
        F.col("ts").alias("hot_ts"),
        F.col("stream").alias("hot_stream"),
        F.col("value").alias("hot"),
    )
    means = (
        _in_window(rounded, 5)
        .groupBy("tick", "stream")
        .agg(F.avg("value").alias("mean"))
        .select("tick", "stream", F.round("mean", 2).alias("mean"))
    )
    joined = means.join(
        hot,
        F.expr(
            "stream = hot_stream and hot_ts >= tick - interval 1 second "
            "and hot_ts <= tick + interval 1 second"
        ),
        "inner",
    )
    return {"7": joined.select(F.col("tick").alias("ts"), "mean", "hot")}


CASE_STUDY = SeedCase(
    name="thesis-case-study",
    seed=SEED,
    where="Section 4.3, Figures 4.6 to 4.12; Appendix B",
    note=(
        "Numbers from the text: three temperatures, rounded up; those above 60 are joined over "
        "one second with the mean of the last five. The printed result is (90.33, 94) from all "
        "three source events. The measured delays, 0 to 17 ms, differ from run to run and are "
        "left out, so results carry the time of the event that fired the window. The code joins "
        "the filter's stream before the mean's, the replay table prints the mean first: the "
        "table is taken. The result's key is (..685, 3, 7, 3) in chapter 4 and (..683, 3, 7, 1) "
        "in chapter 5, and the replay is shown from the third event alone though its window "
        "holds three: the trace table, which names all three, is taken. The first two results "
        "are not printed; they follow from the assertions table."
    ),
    sources={
        "1": SeedSource(
            schema=TEMPERATURES,
            event_time="ts",
            batches=((FIRST, SECOND), (THIRD,)),
            closing={**_temperature(1279398909678, 0, 0.0), "label": "closing"},
        )
    },
    pipeline=_case_study,
    expected={
        "7": (
            row({"ts": FIRST["ts"], "mean": 77.0, "hot": 77.0}, str(FIRST["label"])),
            row(
                {"ts": SECOND["ts"], "mean": 88.5, "hot": 100.0},
                *(str(FIRST["label"]), str(SECOND["label"])),
            ),
            row(
                {"ts": THIRD["ts"], "mean": 90.33, "hot": 94.0},
                *(str(FIRST["label"]), str(SECOND["label"]), str(THIRD["label"])),
            ),
        )
    },
)

CASES = (
    MAP,
    FILTER,
    TIME_WINDOW,
    TIME_WINDOW_BY_JOIN,
    COMPOSITION,
    CLOCK_DRIVEN_WINDOW,
    JOIN_NEW_PAIRS,
    JOIN_LISTS,
    CASE_STUDY,
)
