"""The fewest rows that still produce a result, against plain models over all sets of rows."""

from __future__ import annotations

import json
from itertools import chain, combinations
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F

import clew
from clew.cli import main
from clew.exceptions import QueryError, ReplayError
from clew.testing import read_batches, run_stream, write_batches
from clew.workloads import linear_road, write_files
from frames import READINGS, at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

    Frame = clew.TracedFrame
    Values = dict[str, Any]

KWH = [1, 5, 2, 7, 3, 9, 4, 1, 2]
ROWS = [
    {"rid": i, "ts": at(f"12:00:{i * 3:02d}"), "meter": "ab"[i % 2], "kwh": kwh}
    for i, kwh in enumerate(KWH)
]


def sums(readings: Frame) -> Frame:
    groups = readings.groupBy(F.window("ts", "1 minute"), "meter")
    wanted = [F.sum("kwh").alias("kwh"), F.max("kwh").alias("most"), F.count("*").alias("n")]
    return groups.agg(*wanted).filter("n > 0")


def pairs(readings: Frame) -> Frame:
    """Sum up the readings of meter b that come after each reading of meter a."""
    one = readings.filter("meter = 'a'").select(F.col("rid").alias("a"))
    other = readings.filter("meter = 'b'").select(F.col("rid").alias("b"), F.col("kwh").alias("k"))
    return one.join(other, F.expr("b > a")).groupBy("a").agg(F.sum("k").alias("after"))


def unmatched(readings: Frame) -> Frame:
    """Count the different readings of each meter that the other meter does not have."""
    one, other = (
        readings.filter(f"meter = '{m}'")
        .dropDuplicates(["kwh"])
        .select("kwh", F.col("rid").alias(m))
        for m in "ab"
    )
    both = one.join(other, on="kwh", how="outer")
    return both.groupBy(F.expr("a is null or b is null").alias("alone")).agg(
        F.count("*").alias("n")
    )


def first_three(readings: Frame) -> Frame:
    """A step that cannot keep trials apart: each is a job of its own."""
    top = readings.orderBy(F.desc("kwh"), "rid").limit(3)
    return top.groupBy(F.lit(1).alias("all")).agg(F.sum("kwh").alias("kwh"))


def total(readings: Frame) -> Frame:
    return readings.groupBy().agg(F.sum("kwh").alias("kwh"), F.count("*").alias("n"))


QUERIES: dict[str, Callable[[Frame], Frame]] = {
    each.__name__: each for each in (sums, pairs, unmatched, first_three, total)
}


@pytest.fixture(scope="module")
def prov(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> clew.Provenance:
    folder = tmp_path_factory.mktemp("minimize")
    write_batches(folder / "in", READINGS, [ROWS])
    source = clew.trace(spark.read.parquet(str(folder / "in")), "readings", event_time="ts")
    for name, query in QUERIES.items():
        writer = query(source).write.provenance(str(folder / "prov"), name=name, capture="sets")
        writer.format("noop").mode("append").save()
    return clew.open(folder / "prov")


def gave(found: Any) -> Values:
    assert found.result is not None
    return dict(found.result)


def rids(found: Any) -> set[int]:
    return {row["rid"] for row in found.rows}


def subsets(members: Iterable[int]) -> list[set[int]]:
    listed = sorted(members)
    return [
        set(e) for e in chain.from_iterable(combinations(listed, n) for n in range(len(listed)))
    ]


def check(found: Any, trace: set[int], does: Callable[[set[int]], bool]) -> None:
    """Compare what was found with a plain-Python model of the query, over all sets of rows."""
    kept = rids(found)
    assert found.complete
    assert found.of == len(trace)
    assert kept <= trace
    assert does(kept)
    assert not any(does(kept - {each}) for each in kept)
    if found.smallest:
        assert len(kept) == min([len(e) for e in subsets(trace) if does(e)], default=len(trace))


OF_B = {i for i in range(len(KWH)) if i % 2}


def test_a_sum_over_a_threshold(prov: clew.Provenance) -> None:
    for least in (9, 16):
        found = prov.minimize("sums", {"meter": "b"}, f"kwh >= {least}")

        def does(kept: set[int], least: int = least) -> bool:
            return sum(KWH[i] for i in kept) >= least

        check(found, OF_B, does)
        assert found.smallest
        assert gave(found)["kwh"] == sum(KWH[i] for i in rids(found)) >= least


def test_a_maximum_needs_one_row_and_a_count_all(prov: clew.Provenance) -> None:
    most = prov.minimize("sums", {"meter": "b"}, "most = 9")
    every = prov.minimize("sums", {"meter": "b"}, "n = 4")
    there = prov.minimize("sums", {"meter": "b"})

    assert (rids(most), rids(every), len(there)) == ({5}, OF_B, 1)
    assert (gave(most)["n"], gave(most)["kwh"], gave(every)["kwh"]) == (1, 9, 22)
    assert (there.condition, there.of) == (None, 4)


def test_both_sides_of_a_join_are_needed(prov: clew.Provenance) -> None:
    # The reading of `a` itself, and enough of those of `b` behind it: 7, 9 and 1.
    for least in (9, 17):
        found = prov.minimize("pairs", {"a": 2}, f"after >= {least}")

        def does(kept: set[int], least: int = least) -> bool:
            behind = [KWH[i] for i in kept if i % 2 and i > 2]
            return 2 in kept and bool(behind) and sum(behind) >= least

        check(found, {2, 3, 5, 7}, does)


def test_an_outer_join_gains_rows_by_losing_some(prov: clew.Provenance) -> None:
    """Not monotone: without its partner a row is alone, and of equal rows another is kept."""

    def alone(kept: set[int]) -> int:
        one, other = ({KWH[i] for i in kept if i % 2 == m} for m in (0, 1))
        return len(one ^ other)

    trace = rids(prov.backward("unmatched", {"alone": True}))
    others = set(range(9)) - trace
    assert others == {0, 7, 8}, (
        "0 and 7 are partners, and 8 is equal to 2: they stay where they are"
    )
    found = prov.minimize("unmatched", {"alone": True}, "n % 3 = 0")
    check(found, trace, lambda kept: bool(alone(kept | others)) and alone(kept | others) % 3 == 0)
    assert found.result == {"alone": True, "n": 3}


def test_no_row_at_all_may_be_enough(prov: clew.Provenance) -> None:
    found = prov.minimize("total", {"n": 9}, "n < 100")

    assert (len(found), found.complete) == (0, True)
    assert found.result == {"kwh": None, "n": 0}


def test_a_limit_is_tried_set_by_set_and_can_be_stopped_between(prov: clew.Provenance) -> None:
    told: list[Sequence[int]] = []
    found = prov.minimize(
        "first_three",
        {"all": 1},
        "kwh > 12",
        progress=lambda *each: told.append(each),
    )
    trace = rids(prov.backward("first_three", {"all": 1}))
    assert trace == {5, 3, 1}
    check(found, trace, lambda kept: sum(sorted((KWH[i] for i in kept), reverse=True)[:3]) > 12)
    assert (told[0], told[-1]) == ((0, 2, 3), (found.tests, found.tests, 2))

    stopped = prov.minimize("first_three", {"all": 1}, "kwh > 12", stop=lambda: len(told) > 0)
    assert (stopped.complete, len(stopped), stopped.tests) == (False, 3, 0)
    assert "stopped: perhaps fewer rows would do" in repr(stopped)


def test_what_cannot_be_searched_is_said(prov: clew.Provenance) -> None:
    b = {"meter": "b"}
    with pytest.raises(QueryError, match="Spark does not accept the condition 'kwh >'"):
        prov.minimize("sums", b, "kwh >")
    with pytest.raises(QueryError, match="They are: `window`, `meter`, `kwh`, `most`, `n`"):
        prov.minimize("sums", b, "watts > 3")
    with pytest.raises(QueryError, match="does not accept"):
        prov.minimize("sums", b, "kwh")
    with pytest.raises(QueryError, match="does not meet 'kwh > 100' even with all of its rows"):
        prov.minimize("sums", b, "kwh > 100")
    with pytest.raises(QueryError, match="one row is needed; this is about 2"):
        prov.minimize("sums", [b, {"meter": "a"}])


def test_the_command_line_gives_the_same(
    prov: clew.Provenance, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["minimize", prov.path, "sums", "meter=b", "--condition", "kwh >= 10"]
    assert main([*asked, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    found = prov.minimize("sums", {"meter": "b"}, "kwh >= 10").to_dict()
    assert {**said, "seconds": 0} == {**found, "seconds": 0}

    assert main(asked) == 0
    text = capsys.readouterr().out
    assert text.startswith(f"Row {found['id']} of `sums`: 2 of the 4 source rows give it with kwh")
    assert "they give: window=" in text


def accident(spark: SparkSession, folder: Path, capture: str) -> clew.Provenance:
    """Two cars stand at one place for two minutes, one of them and a third for longer."""
    table = linear_road.reports(cars=6, stopped=1, accidents=1, decoys=0, stand=(4, 4), minutes=5)
    write_files(table, folder / "in", files=1, closing=linear_road.closing_report(table))
    source = read_batches(spark, folder / "in", linear_road.SCHEMA)
    frame = linear_road.accidents_from_reports(clew.trace(source, "reports", event_time="ts"))
    run_stream(frame, folder / "prov", "accidents", checkpoint=folder / "chk", capture=capture)
    return clew.open(folder / "prov")


def test_an_accident_needs_all_of_its_eight_reports(spark: SparkSession, tmp_path: Path) -> None:
    """Windows overlap and are gathered again, so the source around the accident is read, too."""
    with accident(spark, tmp_path, "sets") as prov:
        [alert] = prov.rows("accidents")
        found = prov.minimize("accidents", alert)

    assert (len(found), found.of, found.complete, found.smallest) == (8, 8, True, True)
    assert gave(found)["cars"] == 2
    assert len({row["car"] for row in found.rows}) == 2


def test_a_source_that_is_gone_is_refused_as_a_replay_refuses_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    rows = spark.createDataFrame([(1, 4)], "n int, kwh int")
    frame = clew.trace(rows, "readings", id=["n"]).groupBy("n").agg(F.sum("kwh").alias("kwh"))
    frame.write.provenance(str(tmp_path), name="out", capture="sets").format("noop").mode(
        "append"
    ).save()
    other = frame.filter("kwh > 2")
    prov = clew.open(tmp_path, pipelines={"out": other})
    trace = prov.backward("out", {"n": 1})

    with pytest.raises(ReplayError) as replayed:
        prov.replay(trace)
    with pytest.raises(ReplayError) as searched:
        prov.minimize("out", {"n": 1})
    assert str(searched.value) == str(replayed.value)


def crowds(readings: Frame) -> Frame:
    """Count, in windows over sliding windows, the meters with several readings."""
    kept = readings.withWatermark("ts", "0 seconds")
    sliding = kept.groupBy(F.window("ts", "20 seconds", "10 seconds"), "meter")
    several = sliding.agg(F.count("*").alias("n"), F.max("kwh").alias("most"))
    grouped = several.groupBy(F.window(F.window_time("window"), "10 seconds"), "most")
    return grouped.agg(F.count("*").alias("meters"))


def test_spark_compiles_what_is_tried_of_windows_in_windows(
    spark: SparkSession, tmp_path: Path
) -> None:
    closing = [{"rid": 99, "ts": at("13:00:00"), "meter": "a", "kwh": 0}]
    ddl = "rid long, ts timestamp, meter string, kwh long"
    write_batches(tmp_path / "in", READINGS, [ROWS, closing])
    source = read_batches(spark, tmp_path / "in", ddl)
    frame = crowds(clew.trace(source, "readings", event_time="ts"))
    run_stream(frame, tmp_path / "prov", "crowds", checkpoint=tmp_path / "chk")
    # Where Spark cannot compile an expression, it logs a stack trace and goes on without; so it
    # fails instead.
    spark.conf.set("spark.sql.codegen.fallback", "false")
    try:
        with clew.open(tmp_path / "prov") as prov:
            found = prov.minimize("crowds", {"most": 9, "window.end": "12:00:20"})
            again = prov.replay("crowds")
    finally:
        spark.conf.unset("spark.sql.codegen.fallback")

    assert {row["rid"] for row in found.rows} == {5}
    assert list(again.differences) == []
    assert again.unchanged == len(clew.open(tmp_path / "prov").rows("crowds"))
