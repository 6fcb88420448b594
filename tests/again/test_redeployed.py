"""A query that was changed on its checkpoint: each row belongs to the version that made it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F

import clew
from clew.again import known
from clew.exceptions import OtherVersionError, ReplayError, StoreConflictError
from clew.plan.settings import differing, settings_of
from clew.testing import read_batches, run_stream, write_batches
from frames import READINGS, READINGS_DDL, at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    Frame = clew.TracedFrame

CAPTURES = ("sets", "pointers", "intervals", "keys")
NEW: dict[str, Any] = {"capture": "sets", "restart": "append"}
ZONE = "spark.sql.session.timeZone"


def rows(*said: tuple[int, str, int], meter: str = "a") -> list[dict[str, Any]]:
    return [{"rid": r, "ts": at(clock), "meter": meter, "kwh": kwh} for r, clock, kwh in said]


def totals(condition: str, readings: Frame) -> Frame:
    kept = readings.withWatermark("ts", "0 seconds").filter(condition)
    grouped = kept.groupBy(F.window("ts", "1 minute"), "meter")
    return grouped.agg(F.count("*").alias("n"), F.max("rid").alias("last"))


class Place:
    """A stream of readings, a store, a sink, and one checkpoint."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.folder = spark, folder
        self.store = folder / "prov"

    def source(self, ddl: str = READINGS_DDL) -> Frame:
        read = read_batches(self.spark, self.folder / "in", ddl)
        return clew.trace(read, "readings", event_time="ts")

    def run(
        self,
        build: Callable[[Frame], Frame],
        *batches: list[dict[str, Any]],
        ddl: str = READINGS_DDL,
        **said: Any,
    ) -> None:
        """Deploy the query, with more input."""
        write_batches(self.folder / "in", READINGS, batches)
        said.setdefault("unfold", "later")
        frame = build(self.source(ddl))
        run_stream(frame, self.store, "out", checkpoint=self.folder / "chk", **said)

    def traces(self, **pipelines: Frame) -> dict[int, tuple[set[int], bool]]:
        """Return the source rows of each result by its last one, and whether that is all."""
        found = {}
        with clew.open(str(self.store), pipelines=pipelines) as prov:
            for result in prov.rows("out"):
                trace = prov.backward("out", result.id)
                found[result["last"]] = ({row["rid"] for row in trace.rows}, trace.complete)
        return found


@pytest.fixture
def place(spark: SparkSession, tmp_path: Path) -> Iterator[Place]:
    zone = spark.conf.get(ZONE)
    yield Place(spark, tmp_path)
    spark.conf.set(ZONE, str(zone))


def forget_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask as another process would: no pipeline is at hand."""
    monkeypatch.setattr(known, "_known", {})


@pytest.mark.parametrize("elsewhere", [False, True])
@pytest.mark.parametrize("capture", CAPTURES)
def test_pending_batches_are_unfolded_with_the_pipeline_that_they_ran_with(
    place: Place, capture: str, elsewhere: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = rows((1, "12:00:01", 0), (2, "12:00:02", 7), (3, "12:00:03", 8))
    place.run(lambda r: totals("kwh = 0", r), first, rows((4, "12:05", 0)), capture=capture)
    later = rows((5, "12:06:01", 0), (6, "12:06:02", 9)), rows((7, "12:10", 0))
    place.run(lambda r: totals("kwh >= 0", r), *later, capture=capture)
    if elsewhere:
        forget_the_process(monkeypatch)

    found = place.traces()

    assert found[1] == ({1}, True)
    assert found[4] == (({4}, True) if capture == "sets" else (set(), False))
    assert found[6] == ({5, 6}, True)


def test_a_result_shows_the_steps_that_it_was_made_by(place: Place) -> None:
    place.run(lambda r: r.filter("kwh > 5"), rows((1, "12:00", 6), (2, "12:00", 3)))
    place.run(lambda r: r.filter("kwh > 2").drop("ts"), rows((3, "12:01", 3)))

    with clew.open(str(place.store)) as prov:
        old, new = (prov.backward("out", {"rid": rid}) for rid in (1, 3))
        both = prov.backward("out", list(prov.rows("out")))

    assert old.path == ("readings -> filter (kwh > 5) -> out",)
    assert old.steps[0].labels == {1: "kwh > 5"}
    assert new.path == ("readings -> filter (kwh > 2) -> drop (ts) -> out",)
    assert sorted(both.path) == sorted((*old.path, *new.path))
    assert both.steps[0].arcs == frozenset()


def test_results_of_a_version_that_is_not_at_hand_name_it(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_small = F.udf(lambda kwh: kwh < 5, "boolean")

    def first(readings: Frame) -> Frame:
        return totals("kwh >= 0", readings.filter(is_small("kwh")))

    day = rows((1, "12:00:01", 1), (2, "12:00:02", 2), (3, "12:00:03", 8)), rows((4, "12:05", 0))
    place.run(first, *day, capture="pointers")
    place.run(
        lambda r: totals("kwh >= 5", r),
        rows((5, "12:10", 5)),
        rows((6, "12:20", 0)),
        capture="pointers",
    )
    forget_the_process(monkeypatch)

    assert place.traces()[2] == (set(), False)
    with clew.open(str(place.store)) as prov:
        [*_, gap] = prov.backward("out", {"last": 2}).gaps[:1]
    assert gap.reason.startswith("it ran with version ")
    assert "the step `filter` (<lambda>(" in gap.reason
    assert gap.reason.endswith("holds a Python function (UDF)")

    # Whoever hands the old version in says what its function is; the new one is in the store.
    with clew.open(str(place.store), pipelines={"out": first(place.source())}) as prov:
        prov.unfold("out")
    assert place.traces()[2] == ({1, 2}, True)


def test_a_function_is_not_taken_for_the_same_after_a_restart(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    def below(most: int) -> Callable[[Frame], Frame]:
        is_small = F.udf(lambda kwh: kwh < most, "boolean")
        return lambda readings: totals("kwh >= 0", readings.filter(is_small("kwh")))

    day = rows((1, "12:00:01", 1), (2, "12:00:02", 7)), rows((3, "12:05", 0))
    place.run(below(5), *day, capture="pointers")
    place.run(below(9), rows((4, "12:06", 1)), rows((5, "12:10", 0)), capture="pointers")

    # The first is still known here, and each is itself.
    assert place.traces()[1] == ({1}, True)
    assert place.traces()[3] == (set(), False)


def daily(readings: Frame) -> Frame:
    days = readings.withColumn("day", F.to_date("ts"))
    grouped = days.withWatermark("ts", "0 seconds").groupBy(F.window("ts", "1 minute"), "day")
    return grouped.agg(F.count("*").alias("n"), F.max("rid").alias("last"))


@pytest.mark.parametrize("unstored", [False, True])
@pytest.mark.parametrize("capture", ["pointers", "intervals", "keys"])
def test_what_is_computed_again_has_the_settings_that_the_query_ran_with(
    place: Place, capture: str, unstored: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    day = rows((1, "04:59:50", 1), (2, "05:00:10", 2)), rows((3, "06:00", 0))
    place.spark.conf.set(ZONE, "America/New_York")
    place.run(daily, *day, capture=capture)
    place.spark.conf.set(ZONE, "Asia/Tokyo")
    if unstored:

        def refused(*_: object, **__: object) -> None:
            msg = "not stored"
            raise ReplayError(msg)

        monkeypatch.setattr("clew.again.rebuild.rebuild", refused)
        with pytest.raises(OtherVersionError, match=r'"spark.sql.session.timeZone", "America'):
            place.traces()
        return

    assert place.traces() == {1: ({1}, True), 2: ({2}, True)}


def test_settings_that_are_changed_while_edges_are_computed_are_noticed(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.run(daily, rows((1, "12:00", 1)), rows((2, "12:05", 0)), capture="pointers")
    from clew.again import stage

    written = stage.Stage._write

    def disturbed(self: stage.Stage, *what: Any) -> Any:
        found = written(self, *what)
        place.spark.conf.set(ZONE, "Asia/Tokyo")
        return found

    monkeypatch.setattr(stage.Stage, "_write", disturbed)
    with clew.open(str(place.store)) as prov:
        [gap, *_] = prov.backward("out", {"last": 1}).gaps
    assert "the session was given other settings meanwhile" in gap.reason


def test_questions_that_run_the_query_again_take_the_version_of_the_result(place: Place) -> None:
    first = rows((1, "12:00:01", 3), (2, "12:00:02", 7)), rows((3, "12:05", 9))
    place.run(lambda r: totals("kwh > 5", r), *first, capture="sets")
    place.run(lambda r: totals("kwh > 2", r), rows((4, "12:10", 9)), capture="sets")

    with clew.open(str(place.store)) as prov:
        trace = prov.backward("out", {"last": 2})
        assert [row["rid"] for row in trace.rows] == [2]
        assert prov.replay(trace).same
        assert prov.minimize("out", {"last": 2}, "n = 1").rows.ids() == trace.rows.ids()
        with pytest.raises(ReplayError, match="filled by 2 versions of its query"):
            prov.replay("out")
        spanning = prov.backward("out", {"last": 3})
        assert [row["rid"] for row in spanning.rows] == [3]
        with pytest.raises(ReplayError, match="the query was changed after batch"):
            prov.replay(spanning)


def test_keys_of_two_versions_are_not_recorded_under_one_name(place: Place) -> None:
    place.run(lambda r: r.filter("kwh > 5"), rows((1, "12:00", 6)), assertions="all")

    with pytest.raises(clew.exceptions.StoreConflictError, match="keys of two versions"):
        place.run(lambda r: r.filter("kwh > 2"), rows((2, "12:01", 3)), assertions="all")
    place.run(lambda r: r.filter("kwh > 5"), assertions="all")

    with clew.open(str(place.store)) as prov:
        assert [each.id.stream for each in prov.assertions("out")] == ["out"]


def test_a_row_may_take_part_for_as_long_as_any_version_may_hold_it(place: Place) -> None:
    def minutes(size: int) -> Callable[[Frame], Frame]:
        def build(readings: Frame) -> Frame:
            kept = readings.withWatermark("ts", "0 seconds")
            return kept.groupBy(F.window("ts", f"{size} minutes")).agg(F.max("rid").alias("last"))

        return build

    place.run(minutes(60), rows((1, "12:00:01", 1)), rows((2, "12:01", 0)), capture="sets")
    place.run(minutes(1), rows((3, "12:10", 1)), capture="sets")

    with clew.open(str(place.store)) as prov:
        [stream] = [each for each in prov.streams() if each.name == "out"]
    assert stream.bounds["readings"]["micros"] == 3_600_000_000


@pytest.mark.parametrize("capture", ["pointers", "intervals"])
def test_a_pipeline_that_only_looks_like_the_one_that_ran_is_not_taken_for_it(
    place: Place, capture: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def large(column: str) -> Callable[[Frame], Frame]:
        # Which columns an unpivot takes is not drawn.
        def build(readings: Frame) -> Frame:
            kept = readings.withWatermark("ts", "0 seconds")
            long = kept.unpivot(["ts"], [column], "what", "last").filter("last > 5")
            return long.groupBy(F.window("ts", "1 minute")).agg(F.max("last").alias("last"))

        return build

    place.run(large("kwh"), rows((1, "12:00:01", 7), (8, "12:00:02", 1)), capture=capture)
    place.run(large("kwh"), rows((9, "12:05", 0)), capture=capture)
    forget_the_process(monkeypatch)

    other = large("rid")(place.source())
    with (
        clew.open(str(place.store), pipelines={"out": other}) as prov,
        pytest.raises(ReplayError, match="not the one that filled"),
    ):
        prov.replay("out")
    assert place.traces(out=other) == {7: ({1}, True)}


def test_how_old_dates_are_read_is_a_setting_of_the_query(spark: SparkSession) -> None:
    own = spark.newSession()
    before = settings_of(own)
    name = "spark.sql.parquet.datetimeRebaseModeInRead"
    own.conf.set(name, "LEGACY")

    assert differing(before, settings_of(own)) == [name]


def test_a_setting_is_read_as_it_was_given(spark: SparkSession) -> None:
    own = spark.newSession()
    odd = 'a=1, "b": {\\n}\n\u20ac = spark.sql.legacy.c'
    own.conf.set("spark.sql.legacy.odd", odd)

    assert settings_of(own)["spark.sql.legacy.odd"] == odd


@pytest.mark.parametrize("capture", ["pointers", "intervals", "keys"])
def test_how_literals_are_read_is_a_setting_of_the_query(
    place: Place, capture: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def build(readings: Frame) -> Frame:
        # Of `a\\d` Spark reads `a\d`: a digit behind it, not a backslash and the letter.
        kept = readings.withWatermark("ts", "0 seconds").filter("NOT meter RLIKE 'a\\\\d'")
        return kept.groupBy(F.window("ts", "1 minute")).agg(F.max("rid").alias("last"))

    day = rows((1, "12:00:01", 1)) + rows((2, "12:00:02", 2), meter="a7")
    place.run(build, day, rows((3, "12:05", 0)), capture=capture)
    forget_the_process(monkeypatch)
    name = "spark.sql.parser.escapedStringLiterals"
    place.spark.conf.set(name, "true")
    try:
        assert place.traces() == {1: ({1}, True)}
    finally:
        place.spark.conf.unset(name)


@pytest.mark.parametrize(
    "said",
    [
        {"ddl": "kwh long, ts timestamp, meter string, rid long"},
        {"ddl": f"{READINGS_DDL}, more string"},
        {"mask": {"meter": "drop"}},
    ],
)
def test_rows_in_the_state_are_not_read_as_rows_of_other_columns(
    place: Place, said: dict[str, Any]
) -> None:
    def build(readings: Frame) -> Frame:
        kept = readings.withWatermark("ts", "0 seconds")
        return kept.groupBy(F.window("ts", "1 minute")).agg(F.max("rid").alias("last"))

    place.run(build, rows((1, "12:00:01", 77)), rows((2, "12:05:01", 88)), capture="sets")

    with pytest.raises(StoreConflictError, match="Spark's state holds source rows"):
        place.run(build, rows((3, "12:10", 1)), capture="sets", **said)
    place.run(lambda r: build(r.filter("kwh > 0")), rows((4, "12:20", 1)), capture="sets")

    assert place.traces() == {1: ({1}, True), 2: ({2}, True), 3: ({3}, True)}
    place.folder = place.folder / "anew"
    place.run(build, *([row] for row in rows((5, "12:30", 1), (6, "12:40", 1))), **said, **NEW)


def test_rows_of_other_columns_are_taken_where_no_state_holds_any(place: Place) -> None:
    ddl = "kwh long, ts timestamp, meter string, rid long"
    place.run(lambda r: r.selectExpr("rid AS last"), rows((1, "12:00", 7)), capture="sets")
    place.run(lambda r: r.selectExpr("rid AS last"), rows((2, "12:01", 8)), ddl=ddl, capture="sets")

    assert place.traces() == {1: ({1}, True), 2: ({2}, True)}
