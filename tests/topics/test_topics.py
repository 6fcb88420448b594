"""Streams of Kafka topics, against a real broker: pointers, replay, late records, two queries."""

from __future__ import annotations

import json
import random
import uuid
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc
import pytest
from pyspark.sql import functions as F

import clew
from clew.again.rebuild import rebuild
from clew.exceptions import SourceError
from clew.live.elements import SCHEMA, SPARK_SCHEMA
from clew.live.verify import verify
from clew.sources.reread import Again
from clew.testing import all_traces, run_stream
from frames import at

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

_KIND = "rid int, ts timestamp, meter string, kwh int"
Reading = dict[str, Any]


def send(spark: SparkSession, servers: str, topic: str, rows: list[Reading]) -> None:
    """Put readings into a topic of two partitions, each meter's into one of them."""
    texts = [(r["meter"], json.dumps(r, default=str), "ab".index(r["meter"])) for r in rows]
    frame = spark.createDataFrame(texts, "key string, value string, partition int").coalesce(1)
    writer = frame.write.format("kafka").option("kafka.bootstrap.servers", servers)
    writer.option("topic", topic).save()


def records(spark: SparkSession, servers: str, topic: str, **options: str) -> DataFrame:
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", servers)
    reader = reader.option("subscribe", topic).option("startingOffsets", "earliest")
    return reader.options(**options).load()


def sums(frame: clew.TracedFrame) -> clew.TracedFrame:
    """Add up the readings of each meter over a minute."""
    parsed = frame.select(F.from_json(F.col("value").cast("string"), _KIND).alias("r")).select(
        "r.*"
    )
    return totals(parsed)


def totals(frame: clew.TracedFrame) -> clew.TracedFrame:
    return (
        frame.withWatermark("ts", "10 seconds")
        .groupBy(F.window("ts", "60 seconds"), "meter")
        .agg(F.sum("kwh").alias("kwh"), F.count("*").alias("n"))
    )


def readings(seed: int, count: int) -> list[Reading]:
    """Make readings over ten minutes, some far out of order, and one per meter that closes all."""
    chosen = random.Random(seed)
    rows = []
    for i in range(count):
        late = chosen.choice([0, 0, 0, 200])
        seconds = max(0, 600 * i // count - late)
        text = f"12:{seconds // 60:02d}:{seconds % 60:02d}"
        meter, kwh = chosen.choice("ab"), chosen.randint(0, 3)
        rows.append({"rid": i, "ts": at(text), "meter": meter, "kwh": kwh})
    return rows + [
        {"rid": count + i, "ts": at("13:00:00"), "meter": m, "kwh": 0} for i, m in enumerate("ab")
    ]


def run(frame: clew.TracedFrame, folder: Path, capture: str) -> None:
    place: Any = {"capture": capture}
    writer = frame.writeStream.provenance(str(folder / "prov"), **place).queryName("sums")
    writer = writer.format("parquet").option("path", str(folder / "out"))
    writer = writer.option("checkpointLocation", str(folder / "chk"))
    writer.trigger(availableNow=True).start().awaitTermination()


def found(folder: Path) -> list[tuple[str, list[int]]]:
    """Return every result with the numbers of the readings behind it."""
    out = []
    for trace in all_traces(folder / "prov", "sums"):
        rids = [json.loads(bytes(r["value"]))["rid"] for r in trace.sources["readings"]]
        v = trace.values
        out.append((f"{v['window']['start']} {v['meter']} {v['kwh']} {v['n']}", sorted(rids)))
    return sorted(out)


def read_back(spark: SparkSession, folder: Path) -> list[str]:
    rows = spark.read.parquet(str(folder / "out")).collect()
    return sorted(f"{r.window.start} {r.meter} {r.kwh} {r.n}" for r in rows)


@pytest.fixture(scope="module", params=[1, 2])
def sent(
    spark: SparkSession, servers: str, request: pytest.FixtureRequest
) -> tuple[str, list[Reading]]:
    topic, rows = f"readings-{uuid.uuid4().hex[:8]}", readings(request.param, 120)
    send(spark, servers, topic, rows[:60])
    send(spark, servers, topic, rows[60:])
    return topic, rows


@pytest.mark.parametrize("capture", ["pointers", "intervals"])
def test_topics_are_unfolded_and_replayed_like_sets(
    spark: SparkSession, servers: str, tmp_path: Path, sent: tuple[str, list[Reading]], capture: str
) -> None:
    topic, rows = sent
    stream = records(spark, servers, topic, maxOffsetsPerTrigger="13")
    again = {"kafka.bootstrap.servers": servers}

    run(sums(clew.trace(stream, "readings", again=again)), tmp_path / capture, capture)
    run(sums(clew.trace(stream, "readings")), tmp_path / "sets", "sets")
    if capture == "intervals":
        prov = clew.open(tmp_path / capture / "prov")
        prov.unfold("sums")
        # The address of the broker is in the store, so the topics can be read from there as well.
        prov._pipelines["sums"] = rebuild(tmp_path / capture / "prov", "sums")
        again_from_store = prov.replay("sums")
        assert (again_from_store.same, again_from_store.unchanged) == (True, len(prov.rows("sums")))

    assert found(tmp_path / capture) == found(tmp_path / "sets")
    behind = dict(found(tmp_path / capture))
    assert sorted(behind) == read_back(spark, tmp_path / capture)
    by_rid = {r["rid"]: r for r in rows}
    for name, rids in behind.items():
        *_, meter, kwh, n = name.split()
        assert {by_rid[i]["meter"] for i in rids} == {meter}
        assert (sum(by_rid[i]["kwh"] for i in rids), len(rids)) == (int(kwh), int(n))
    assert len({i for rids in behind.values() for i in rids}) < 120, "some readings came too late"


def test_records_before_the_first_batch_are_no_part_of_the_stream(
    spark: SparkSession, servers: str, tmp_path: Path
) -> None:
    topic, rows = f"readings-{uuid.uuid4().hex[:8]}", readings(3, 60)
    send(spark, servers, topic, rows[:30])
    counts = [sum(r["meter"] == m for r in rows[:20]) for m in "ab"]
    starting = json.dumps({topic: {"0": counts[0], "1": counts[1]}})
    send(spark, servers, topic, rows[30:])
    stream = records(spark, servers, topic, startingOffsets=starting)
    again = {"kafka.bootstrap.servers": servers}

    run(sums(clew.trace(stream, "readings", again=again)), tmp_path, "pointers")

    assert min(i for _, rids in found(tmp_path) for i in rids) == 20
    assert sum(len(rids) for _, rids in found(tmp_path)) == sum(
        int(name.split()[-1]) for name, _ in found(tmp_path)
    )


def test_a_replay_reads_no_records_from_before_the_window(
    spark: SparkSession, servers: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic, rows = f"readings-{uuid.uuid4().hex[:8]}", readings(4, 80)
    send(spark, servers, topic, rows[:40])
    send(spark, servers, topic, rows[40:])
    stream = records(spark, servers, topic)
    again = {"kafka.bootstrap.servers": servers}
    run(sums(clew.trace(stream, "readings", again=again)), tmp_path, "intervals")
    read: list[int] = []
    plain = Again.read_topics

    def counted(self: Again, *given: Any) -> DataFrame:
        table = plain(self, *given)
        read.append(table.count())
        return table

    monkeypatch.setattr(Again, "read_topics", counted)
    prov = clew.open(tmp_path / "prov")
    last = next(r for r in prov.rows("sums", limit=None) if "12:08" in str(r["window"]["start"]))

    rids = [json.loads(bytes(r["value"]))["rid"] for r in prov.backward("sums", last).rows]

    assert rids == [r["rid"] for r in rows if r["rid"] in rids]
    assert min(rids) >= 40
    assert len(rids) <= read[0] <= 42, "at most the second half, and two that close all windows"


def test_a_point_keeps_what_is_needed_of_a_topic(
    spark: SparkSession, servers: str, tmp_path: Path
) -> None:
    topic, rows = f"readings-{uuid.uuid4().hex[:8]}", readings(6, 90)
    send(spark, servers, topic, rows[:50])
    send(spark, servers, topic, rows[50:])
    stream = records(spark, servers, topic, maxOffsetsPerTrigger="11")
    parsed = stream.selectExpr(
        "topic", "partition", "offset", f"from_json(CAST(value AS STRING), '{_KIND}') AS r"
    ).select("topic", "partition", "offset", "r.*")
    pointed = clew.trace(parsed, "readings", event_time="ts", point=["rid", "meter", "kwh"])
    plain = clew.trace(parsed, "readings", event_time="ts")

    run(totals(pointed), tmp_path / "pointers", "pointers")
    run(totals(plain), tmp_path / "sets", "sets")

    answers = [
        sorted(
            (str(t.values), sorted(r["rid"] for r in t.sources["readings"]))
            for t in all_traces(tmp_path / capture / "prov", "sums")
        )
        for capture in ("pointers", "sets")
    ]
    assert answers[0] == answers[1]
    late = set(range(90)) - {rid for _, rids in answers[0] for rid in rids}
    assert late, "some readings came too late"
    kept = tmp_path / "pointers" / "prov" / "points" / "sums" / "readings"
    left = spark.read.parquet(*[str(p) for p in kept.glob("[0-9]*")]).collect()
    assert {r.rid for r in left} >= {90, 91}, "the open windows' rows are kept"
    assert len(left) < 92, "what can contribute to nothing more is dropped"


def test_two_queries_meet_at_a_topic(spark: SparkSession, servers: str, tmp_path: Path) -> None:
    topic, rows = f"readings-{uuid.uuid4().hex[:8]}", readings(5, 60)
    between = f"sums-{uuid.uuid4().hex[:8]}"
    send(spark, servers, topic, rows)
    store, again = str(tmp_path / "prov"), {"kafka.bootstrap.servers": servers}
    first = sums(clew.trace(records(spark, servers, topic), "readings", again=again))
    sent = first.select(F.to_json(F.struct("window", "meter", "kwh", "n")).alias("value"))
    writer = sent.writeStream.provenance(store, keep_id=True).queryName("sums").format("kafka")
    writer = writer.options(**{"kafka.bootstrap.servers": servers, "topic": between})
    writer = writer.option("checkpointLocation", str(tmp_path / "first"))
    writer.trigger(availableNow=True).start().awaitTermination()

    received = records(spark, servers, between, includeHeaders="true").selectExpr(
        "from_json(CAST(value AS STRING), 'meter string, kwh int, n int') AS row",
        "CAST(filter(headers, h -> h.key = 'clew_id')[0].value AS STRING) AS clew_id",
    )
    large = clew.trace(received.select("row.*", "clew_id"), "sums").filter("n >= 4")
    last = large.writeStream.provenance(store).queryName("large").format("parquet")
    last = last.options(path=str(tmp_path / "out"), checkpointLocation=str(tmp_path / "second"))
    last.trigger(availableNow=True).start().awaitTermination()

    prov = clew.open(store)
    results = prov.rows("large", limit=None)
    assert len(results) == sum(int(r["n"]) >= 4 for r in results) > 0
    by_rid = {r["rid"]: r for r in rows}
    for row in results:
        behind = prov.backward("large", row).rows
        rids = [json.loads(bytes(r["value"]))["rid"] for r in behind]
        assert len(rids) == row["n"]
        assert sum(by_rid[i]["kwh"] for i in rids) == row["kwh"]
        assert {by_rid[i]["meter"] for i in rids} == {row["meter"]}


def test_options_are_refused_for_what_kafka_does_not_give(
    spark: SparkSession, servers: str
) -> None:
    stream = records(spark, servers, "none").withColumn("more", F.lit(1))

    with pytest.raises(SourceError, match="columns that Kafka does not give, such as `more`"):
        clew.trace(stream, "readings", again={"kafka.bootstrap.servers": servers})


def test_options_are_refused_for_records_that_were_left_out_or_changed(
    spark: SparkSession, servers: str
) -> None:
    again = {"kafka.bootstrap.servers": servers}
    stream = records(spark, servers, "none")

    for changed in (stream.filter("partition = 0"), stream.withColumn("value", F.unhex("value"))):
        with pytest.raises(SourceError, match="filtered or changed before `clew.trace`"):
            clew.trace(changed, "readings", again=again)
    clew.trace(stream.withWatermark("timestamp", "1 minute"), "readings", again=again)


def test_a_live_graph_goes_through_a_topic(
    spark: SparkSession, servers: str, tmp_path: Path
) -> None:
    topic, rows = f"readings-{uuid.uuid4().hex[:8]}", readings(8, 60)
    send(spark, servers, topic, rows)
    stream = records(spark, servers, topic, maxOffsetsPerTrigger="13")
    parsed = stream.selectExpr(
        "topic", "partition", "offset", f"from_json(CAST(value AS STRING), '{_KIND}') AS r"
    ).select("topic", "partition", "offset", "r.*")
    source = clew.trace(parsed, "readings", event_time="ts")
    # A query whose rows expire by the watermark, and one that must have read them.
    for name, frame in {"totals": totals(source), "high": source.filter("kwh > 1")}.items():
        run_stream(frame, tmp_path / "prov", name, checkpoint=tmp_path / name, capture="sets")

    out = f"graph-{uuid.uuid4().hex[:8]}"
    with clew.open(tmp_path / "prov") as prov:
        elements = prov.live(spark=spark).selectExpr("to_json(struct(*)) AS value")
        writer = elements.writeStream.format("kafka").option("kafka.bootstrap.servers", servers)
        writer = writer.option("topic", out).option("checkpointLocation", str(tmp_path / "graph"))
        writer.trigger(availableNow=True).start().awaitTermination()
        status = prov.graph().status()
        alive = {row["rid"] for row in prov.alive("readings", None)}
        contributed = {row["rid"] for row in prov.rows("readings", limit=None)}

    reader = spark.read.format("kafka").option("kafka.bootstrap.servers", servers)
    read = reader.option("subscribe", out).load().selectExpr("CAST(value AS STRING) AS value")
    found = read.select(F.from_json("value", SPARK_SCHEMA).alias("e")).select("e.*").toArrow()
    report = verify(found.cast(SCHEMA))
    assert str(report).endswith("0 violations")
    assert (report.vertices, report.edges) == (status.vertices, status.edges)
    labels = found.filter((pc.field("element") == "label") & (pc.field("side") == "source"))
    assert labels.num_rows == len(contributed - alive) > 30
