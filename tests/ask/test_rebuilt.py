"""Pipelines that are rebuilt from the store: the same results, or a refusal that names the step."""

from __future__ import annotations

import datetime as dt
import decimal
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.sql import Window
from pyspark.sql import functions as F

import clew
from clew.again.blueprint import store_pipeline
from clew.again.describe import shape_of
from clew.again.rebuild import check_stored, rebuild
from clew.exceptions import OtherVersionError, ReplayError
from clew.testing import read_batches, run_stream, write_batches
from clew.workloads import linear_road, write_files
from domains import smart_grid
from frames import READINGS, READINGS_DDL, at, scattered
from properties.building import build
from properties.random_rows import random_data
from properties.random_specs import random_spec
from properties.row_files import read_frames, write_data

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import Column, SparkSession

    Frame = clew.TracedFrame

SEED = 4
SEEDS = (2, 19)
ROOT = Path(__file__).parents[2]
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.adaptive.enabled": "false",
    "spark.driver.memory": "2g",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.session.timeZone": "America/New_York",
}
"""Of the other process; its zone is not that of the queries, and some of them use clocks."""


def batch(spark: SparkSession) -> Frame:
    rows = [row for each in scattered(SEED, 3) for row in each]
    folder = Path(str(spark.conf.get("spark.local.dir"))) / f"readings-{SEED}"
    if not folder.exists():
        write_batches(folder, READINGS, [rows])
    return clew.trace(spark.read.parquet(str(folder)), "readings", event_time="ts")


def verbs(readings: Frame) -> Frame:
    """One of each kind of verb, with expressions of all kinds."""
    named = readings.withColumn("hour", F.hour("ts")).named("hourly")
    wide = named.withColumns({"half": F.col("kwh") / 2 + 0.5, "list": F.array("kwh", F.lit(7))})
    bare = wide.select(
        "rid",
        wide["meter"],
        wide.hour,
        "ts",
        "half",
        F.explode(F.transform("list", lambda x: x + F.col("kwh"))).alias("each"),
        F.when(F.col("meter").isin("a", "it's"), "ours").otherwise("theirs").alias("whose one"),
    )
    kept = bare.filter(F.col("ts") >= dt.datetime(2026, 1, 1, tzinfo=dt.timezone.utc))
    kept = kept.fillna({"half": 0.0}).withColumnRenamed("each", "one").dropna(subset=["one"])
    grouped = kept.groupBy(F.window("ts", "1 minute", "30 seconds"), "meter", "`whose one`").agg(
        F.countDistinct("one").alias("n"),
        F.sum(F.col("half") * 1.5).alias("half of it"),
        F.max("hour").alias("hour"),
        F.max(F.col("one").cast("string")).alias("text"),
    )
    late = grouped.filter("n > 1").select("meter", F.col("n").cast("long").alias("n"), "text")
    both = late.union(readings.select("meter", "kwh", F.lit("none"))).dropDuplicates()
    sides = both.alias("l").join(readings.alias("r"), F.col("l.meter") == F.col("r.meter"))
    paired = sides.select("l.meter", "n", "text", "r.rid").drop("text")
    return paired.orderBy(F.col("n").desc(), "rid")


def in_order(readings: Frame) -> Frame:
    """Windows that Spark lacks, and a join of them by a condition that is a function."""
    ordered = readings.inOrder("meter", time="ts")
    last = ordered.countWindow(3, 2).select("meter", "ts", F.size("rows").alias("n"))
    pairs = ordered.join(
        readings.inOrder("meter", time="ts"),
        within="40 seconds",
        on=lambda left, right: (left["kwh"] > right["kwh"]) & (left["meter"] == "a"),
    )
    return last.unionByName(pairs.select("meter", "ts", F.size("pairs").alias("n")))


def stored(frame: Frame, folder: Path, name: str, **settings: Any) -> tuple[str, str]:
    writer = frame.write.provenance(str(folder / name), name=name, **settings)
    writer.format("noop").mode("append").save()
    return str(folder / name), name


def streamed(frame: Frame, folder: Path, name: str, **settings: Any) -> tuple[str, str]:
    run_stream(frame, folder / name, name, checkpoint=folder / f"chk-{name}", **settings)
    return str(folder / name), name


def road(spark: SparkSession, folder: Path) -> Frame:
    table = linear_road.reports(cars=12, minutes=6, stopped=1, accidents=1, seed=SEED)
    closing = linear_road.closing_report(table)
    write_files(table, folder / "road", files=1, closing=closing)
    source = read_batches(spark, folder / "road", linear_road.SCHEMA)
    return linear_road.accidents_from_reports(clew.trace(source, "reports", event_time="ts"))


def grid(spark: SparkSession, folder: Path) -> Frame:
    table = smart_grid.readings(meters=12, days=3, seed=SEED)
    closing = smart_grid.closing_reading(table)
    write_files(table, folder / "grid", files=1, closing=closing)
    source = read_batches(spark, folder / "grid", smart_grid.SCHEMA)
    return smart_grid.anomalies(clew.trace(source, "readings", event_time="ts"))


def random_batch(spark: SparkSession, folder: Path, seed: int) -> Frame:
    spec = random_spec(seed, streaming=False)
    paths = write_data(folder / f"random-{seed}", spec, random_data(seed, spec))
    frames = read_frames(spark, spec, paths)
    frame: Frame = build(spec, {name: clew.trace(df, name) for name, df in frames.items()})
    return frame


@pytest.fixture(scope="module")
def places(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, str]]:
    """Run queries, each with a store of its own."""
    print(f"seeds {SEED}, {SEEDS}")
    folder = tmp_path_factory.mktemp("rebuilt")
    return [
        streamed(road(spark, folder), folder, "accidents", capture="keys"),
        streamed(grid(spark, folder), folder, "anomalies", capture="keys"),
        stored(verbs(batch(spark)), folder, "verbs", capture="sets"),
        stored(in_order(batch(spark)), folder, "in order", capture="sets"),
        *[
            stored(random_batch(spark, folder, seed), folder, f"random {seed}", capture="sets")
            for seed in SEEDS
        ],
    ]


@pytest.fixture(scope="module")
def answers(
    places: list[tuple[str, str]], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, dict[str, Any]]:
    """Ask for the results of the queries in another process."""
    folder = tmp_path_factory.mktemp("elsewhere")
    defaults = "".join(f"{key} {value}\n" for key, value in SETTINGS.items())
    (folder / "spark-defaults.conf").write_text(defaults)
    paths = os.pathsep.join(str(ROOT / each) for each in ("src", "tests"))
    done = subprocess.run(
        [sys.executable, str(ROOT / "tests" / "ask" / "elsewhere.py")],
        input=json.dumps(places),
        env={**os.environ, "SPARK_CONF_DIR": str(folder), "PYTHONPATH": paths},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    found = json.loads(done.stdout)
    return {name: answer for (_, name), answer in zip(places, found, strict=True)}


@pytest.mark.parametrize(
    "name", ["accidents", "anomalies", "verbs", "in order", *[f"random {s}" for s in SEEDS]]
)
def test_another_process_replays_without_the_pipeline(
    answers: dict[str, dict[str, Any]], name: str
) -> None:
    answer = answers[name]

    assert answer["rows"] > 0
    assert answer["trace"] == [answer["rows"], []]
    assert answer["whole"] == [answer["rows"], []]


def test_another_process_finds_the_rows_that_the_model_says(
    answers: dict[str, dict[str, Any]],
) -> None:
    """Rows of `keys` are looked up by the rebuilt pipeline, so this is what it computed."""
    table = linear_road.reports(cars=12, minutes=6, stopped=1, accidents=1, seed=SEED)
    expected = linear_road.expected_accidents(table)
    assert answers["accidents"]["rows"] == len(expected)
    behind = set().union(*[each.rows["reports"] for each in expected])
    assert len(answers["accidents"]["sources"]) == len(behind)


def test_a_rebuilt_pipeline_has_the_shape_of_the_one_that_ran(
    spark: SparkSession, places: list[tuple[str, str]]
) -> None:
    paths = {name: Path(path) for path, name in places}
    for name, query in (("verbs", verbs), ("in order", in_order)):
        assert shape_of(rebuild(paths[name], name)) == shape_of(query(batch(spark)).node)


EXPRESSIONS: dict[str, Callable[[], Column]] = {
    "floats and decimals": lambda: F.col("kwh") * 1.5 + F.lit(decimal.Decimal("1.50")),
    "a field that is set": lambda: F.struct("kwh").withField("kwh", F.lit(1)),
    "a Python function": lambda: F.udf(lambda x: x, "long")("kwh"),
    "a registered function": lambda: F.expr("twice(kwh)"),
}


def test_what_does_not_come_back_is_refused_by_name(spark: SparkSession) -> None:
    spark.udf.register("twice", lambda x: 2 * x, "long")
    try:
        whys = {}
        for name, make in EXPRESSIONS.items():
            frame = batch(spark).select(make().alias("x"))
            [one] = store_pipeline(frame.node)["unstored"]
            assert one["step"] == 1
            whys[name] = one["why"]
    finally:
        spark.sql("DROP TEMPORARY FUNCTION twice")
    no_text = "for which there is no SQL text that is sure to mean the same"
    assert whys["floats and decimals"].endswith(no_text)
    assert whys["a field that is set"] == f"`update_field(struct(kwh), kwh, 1) AS x`, {no_text}"
    assert whys["a Python function"] == "a Python function (UDF)"
    assert whys["a registered function"] == (
        "the function `twice`, which was registered in its session"
    )


STORED: dict[str, tuple[Callable[[], Column], str]] = {
    "a string with quotes": (lambda: F.lit('it\'s a \\ "b"'), "'it\\'s a \\\\ \"b\"' AS x"),
    "a float": (lambda: F.col("kwh") > 1.5, "`>`(kwh, 1.5D) AS x"),
    "a decimal": (lambda: F.lit(decimal.Decimal("1.50")), "1.50 AS x"),
    "a day": (lambda: F.lit(dt.date(2026, 1, 1)), "DATE '2026-01-01' AS x"),
    "a text like a day": (lambda: F.lit("2026-01-01"), "'2026-01-01' AS x"),
    "a length of time": (
        lambda: F.col("ts") + F.expr("interval 1 day"),
        "`+`(ts, interval 1 day) AS x",
    ),
    "a cast": (lambda: F.col("kwh").cast("string"), "CAST(kwh AS STRING) AS x"),
    "a function": (
        lambda: F.filter(F.array("kwh"), lambda k: k > 1),
        "filter(array(kwh), x_1 -> `>`(x_1, 1)) AS x",
    ),
    "a random number": (lambda: F.rand(7), "rand(7L) AS x"),
}


def test_expressions_are_stored_as_text(spark: SparkSession) -> None:
    found = {}
    for name, (make, _) in STORED.items():
        pipeline = store_pipeline(batch(spark).select(make().alias("x")).node)
        assert pipeline["unstored"] == [], name
        [column] = pipeline["steps"][1]["with"]["columns"]["tuple"]
        found[name] = column["sql"]
    assert found == {name: text for name, (_, text) in STORED.items()}


def test_aggregates_that_spark_names_are_stored(spark: SparkSession) -> None:
    groups = batch(spark).groupBy("meter")
    for frame, text in (
        (groups.sum("kwh"), "sum(kwh) AS `sum(kwh)`"),
        (groups.agg({"kwh": "avg"}), "avg(kwh) AS `avg(kwh)`"),
    ):
        pipeline = store_pipeline(frame.node)
        assert pipeline["unstored"] == []
        assert pipeline["steps"][1]["with"]["aggregates"] == {"tuple": [{"sql": text}]}


def test_windows_of_rows_are_stored(spark: SparkSession) -> None:
    before = Window.partitionBy("meter").orderBy(F.col("ts").desc(), "rid").rowsBetween(-2, 0)
    frame = batch(spark).select("*", F.sum("kwh").over(before).alias("n"), partition=["meter"])
    pipeline = store_pipeline(frame.node)
    assert pipeline["unstored"] == []
    text = pipeline["steps"][1]["with"]["columns"]["tuple"][1]["sql"]
    assert text.endswith("ROWS BETWEEN -2 FOLLOWING AND CURRENT ROW) AS n")


def test_a_pipeline_with_a_function_says_which_one(spark: SparkSession, tmp_path: Path) -> None:
    def cleaned(batches: Iterator[Any]) -> Iterator[Any]:
        yield from batches

    kind = "rid long, kwh long, clew_id string"
    frame = batch(spark).select("rid", "kwh").mapInPandas(cleaned, kind, carries="id")
    path, name = stored(frame.filter("kwh > 1"), tmp_path, "out", capture="sets")
    with pytest.raises(ReplayError) as refused:
        rebuild(Path(path), name)
    assert str(refused.value).startswith(
        "the pipeline that fills `out` cannot be rebuilt from the store: the step `mapInPandas` "
        "(cleaned) holds a Python function, `cleaned`.\n\nHand it in: `clew.open("
    )
    assert "--pipeline module:function" in str(refused.value)


def changed(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    file = path / "streams" / "out.json"
    said = json.loads(file.read_text())
    change(said)
    file.write_text(json.dumps(said))


def test_another_text_than_the_one_that_ran_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    frame = batch(spark).filter(F.col("kwh") > 1)
    path = Path(stored(frame, tmp_path, "out", capture="sets")[0])
    assert check_stored(path, "out")["pipeline"]["version"] == 2

    def less(said: dict[str, Any]) -> None:
        said["pipeline"]["steps"][1]["with"]["args"]["tuple"][0]["sql"] = "`>`(kwh, 2)"

    changed(path, less)
    with pytest.raises(ReplayError, match="its text in the store is not the one that was run"):
        rebuild(path, "out")


def test_two_versions_of_a_pipeline_are_told_apart(spark: SparkSession, tmp_path: Path) -> None:
    stored(batch(spark).filter("kwh > 1"), tmp_path, "out", capture="sets")
    path = Path(stored(batch(spark).filter("kwh > 2"), tmp_path, "out", capture="sets")[0])
    said = json.loads((path / "streams" / "out.json").read_text())
    [earlier] = said["earlier"]
    assert rebuild(path, "out", version=earlier).operator.label == "kwh > 1"
    assert rebuild(path, "out").operator.label == "kwh > 2"
    with pytest.raises(OtherVersionError, match="version unheard .* is not stored"):
        rebuild(path, "out", version="unheard of")


def test_steps_that_give_other_columns_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    path = Path(stored(batch(spark).filter("kwh > 1"), tmp_path, "out", capture="sets")[0])

    def other(said: dict[str, Any]) -> None:
        said["graph"]["nodes"][1]["inputs"] = []

    changed(path, other)
    with pytest.raises(ReplayError, match="cannot be rebuilt from the store"):
        rebuild(path, "out")


def test_a_source_that_is_gone_leaves_traces_to_replay(spark: SparkSession, tmp_path: Path) -> None:
    local = spark.createDataFrame([(1, "a", 3), (2, "a", 4)], "rid int, meter string, kwh int")
    frame = clew.trace(local, "local", id=["rid"]).groupBy("meter").agg(F.sum("kwh").alias("kwh"))
    path, name = stored(frame, tmp_path, "out", capture="sets")
    prov = clew.open(path)
    prov._pipelines["out"] = rebuild(Path(path), name)
    trace = prov.backward("out", {"meter": "a"})
    assert {row["rid"] for row in trace.rows} == {1, 2}
    again = prov.replay(trace)
    assert (again.unchanged, again.differences) == (1, ())
    with pytest.raises(ReplayError, match="`local`, a source of `out`, cannot be read again"):
        prov.replay("out")


def test_properties_are_rebuilt_with_their_functions(spark: SparkSession, tmp_path: Path) -> None:
    heard: list[tuple[Any, ...]] = []
    frame = (
        batch(spark)
        .property("most", F.col("kwh") * 2, merge="max")
        .property("most", lambda so_far: so_far + F.col("kwh") % 2)
        .property("bits", F.col("kwh"), merge=(F.bit_or, lambda a, b: a.bitwiseOR(b)))
    )
    total = frame.groupBy("meter").agg(F.sum("kwh").alias("kwh"))
    both = total.join(frame.groupBy("meter").agg(F.count("*").alias("n")), "meter")
    path, name = stored(both, tmp_path, "out", capture="sets")
    prov = clew.open(path)
    prov._pipelines["out"] = rebuild(Path(path), name)
    prov.subscribe("out", "most", lambda r: heard.append((r.meter, r.most, r.bits)))
    expected = [(r["meter"], r["most"], r["bits"]) for r in both.properties().collect()]
    assert sorted(heard) == sorted(expected)
    assert len(expected) == 2


def test_a_table_of_the_catalog_and_a_folder_with_partitions(
    spark: SparkSession, tmp_path: Path
) -> None:
    rows = pa.table({"rid": [1, 2, 3], "meter": ["a", "b", "b"], "kwh": [1, 2, 3]})
    spark.createDataFrame(rows).write.partitionBy("meter").parquet(str(tmp_path / "parts"))
    parts = clew.trace(spark.read.parquet(str(tmp_path / "parts")), "parts", id=["rid"])
    assert store_pipeline(parts.filter("kwh > 1").node)["sources"]["parts"]["read"] == {
        "stream": False,
        "format": "parquet",
        "folder": str(tmp_path / "parts"),
    }
    spark.createDataFrame(rows).write.mode("overwrite").saveAsTable("meters")
    table = clew.trace(spark.table("meters"), "meters", id=["rid"])
    assert store_pipeline(table.filter("kwh > 1").node)["sources"]["meters"]["read"] == {
        "stream": False,
        "table": "`meters`",
    }
    spark.sql("DROP TABLE meters")
    read = spark.read.option("header", "true").schema("rid int").csv(str(tmp_path / "parts"))
    options = clew.trace(read, "csv", id=["rid"])
    said = store_pipeline(options.filter("rid > 1").node)["sources"]["csv"]["read"]
    assert said == {"stream": False, "why": "how it was read is not in the store"}


def test_a_stream_notes_its_pipeline_once_and_keeps_it_over_a_restart(
    spark: SparkSession, tmp_path: Path
) -> None:
    write_batches(
        tmp_path / "in", READINGS, [[{"rid": 1, "ts": at("12:00"), "meter": "a", "kwh": 1}]]
    )
    for _ in range(2):
        source = read_batches(spark, tmp_path / "in", READINGS_DDL)
        frame = clew.trace(source, "readings", event_time="ts")
        frame = frame.filter(F.exists(F.array("kwh"), lambda k: k > 0))
        path, name = streamed(frame, tmp_path, "out", capture="sets")
    [run] = check_stored(Path(path), name)["runs"]
    assert len(run["pipeline"]) == 64
    assert rebuild(Path(path), name).columns == ["rid", "ts", "meter", "kwh"]
